import { describe, expect, it } from "vitest";
import { type RuleOptions, requestedRule } from "../../../cli/suggest/requested-rule.ts";
import { ruleText } from "../../../cli/suggest/rule-text.ts";
import {
  type ProposedLimit,
  roundUpToMemorable,
  type WindowSuggestion,
} from "../../../cli/suggest/suggestion.ts";
import { defineConfig } from "../../../src/config/index.ts";

function withLimit(limit: number | undefined, denied: Partial<ProposedLimit> = {}) {
  const proposed = limit && { limit, clientsDenied: 0, requestsDenied: 0, ...denied };
  return { proposed } as WindowSuggestion;
}

/** Returns the text for a rule with these limits. */
function textOf(options: RuleOptions, limits: readonly (number | undefined)[]) {
  const suggestions = limits.map((limit) => withLimit(limit));
  return ruleText(requestedRule(options), suggestions, 5000);
}

/** Reads the text as the element of a list. */
function ruleIn(text: string | undefined) {
  const [rule] = new Function(`return [${text}]`)();
  return rule;
}

describe("the rule to paste", () => {
  it("has the figures, and is in shadow mode", () => {
    const options = { match: "POST /login", window: ["1m"] };
    const limit = withLimit(20, { clientsDenied: 5, requestsDenied: 1234 });
    expect(ruleText(requestedRule(options), [limit], 5000)).toBe(
      [
        "{",
        '  name: "login",',
        '  match: { methods: ["POST"], paths: ["/login"] },',
        '  key: "ip",',
        "  // In the log, 5 of 5,000 clients sent more than 20 requests in 1m: 1,234 requests too many.",
        "  limit: 20,",
        '  window: "1m", sliding: true,',
        "  // Counts and logs, but denies nothing. Remove this line to enforce the limits.",
        '  mode: "shadow",',
        "},",
      ].join("\n"),
    );
  });

  it.each([
    [{}, [20, 500]],
    [{ match: "GET,POST api.example.com *.example.org /a /:id{[0-9]{1,3}}/*" }, [20, 500]],
    [{ key: ["header:x-api-key | ip", "path"] }, [20, 500]],
    [{ window: ["10s", "5m", "day", "month"] }, [5, 20, 500, 9000]],
    [{ match: '{"paths":["/\u202e`$x/\\"/"],"except":{"ips":["192.0.2.0/24"]}}' }, [1, 2]],
    [
      { match: `{"paths":${JSON.stringify(Array.from({ length: 30 }, (_, at) => `/p/${at}`))}}` },
      [1, 2],
    ],
    [{ match: '{"headers":{"x-plan":true,"__proto__":false}}' }, [1, 2]],
  ])("is valid for %j", (options, limits) => {
    const rule = ruleIn(textOf(options, limits));
    const { name, match, key } = requestedRule(options).input;
    expect(rule).toMatchObject({ name, key, mode: "shadow", ...(match && { match }) });
    const [checked] = defineConfig({ rules: [rule] }).rules;
    expect(checked?.windows.map(({ limit }) => limit)).toEqual(limits);
  });

  it("is plain ASCII", () => {
    const text = textOf({ match: '{"paths":["/ü\u200b\u202e"]}' }, [1, 2]);
    expect(text).toMatch(/^[\n\x20-\x7e]+$/);
    expect(ruleIn(text).match.paths).toEqual(["/ü\u200b\u202e"]);
  });

  it("hides values of header fields and parameters, which may be secrets", () => {
    const match = {
      headers: { "x-token": "s3cret", "x-plan": ["s3cret"], "x-a": true },
      except: { query: { t: { prefix: "s3cret" } } },
    };
    const text = textOf({ match: JSON.stringify(match) }, [1, 2]);
    expect(text).not.toContain("s3cret");
    expect(text).toContain("// Write the values of the header fields and query parameters");
    expect(ruleIn(text).match).toEqual({
      headers: { "x-token": "…", "x-plan": "…", "x-a": true },
      except: { query: { t: "…" } },
    });
  });

  it.each([
    ["60 per minute admits no more than 3000 per hour", ["1m", "1h"], [60, 5000], [60]],
    ["50 per hour admits no more than 50 per minute", ["1m", "1h"], [50, 50], [50]],
    ["both limits deny requests", ["1m", "1h"], [60, 3000], [60, 3000]],
    ["a window has no limit", ["1m", "1h"], [60, undefined], [60]],
  ])("leaves out limits that deny nothing: %s", (_, window, limits, kept) => {
    const [checked] = defineConfig({ rules: [ruleIn(textOf({ window }, limits))] }).rules;
    expect(checked?.windows.map(({ limit }) => limit)).toEqual(kept);
  });

  it("is undefined without limits", () => {
    expect(textOf({}, [undefined, undefined])).toBeUndefined();
  });
});

describe("roundUpToMemorable", () => {
  it("returns a number with few digits that is not below the limit, and at most a third above", () => {
    for (const limit of [...Array.from({ length: 2000 }, (_, at) => at + 1), 123_456, 99_999_999]) {
      const kind = roundUpToMemorable(limit);
      expect(kind).toBeGreaterThanOrEqual(limit);
      expect(kind).toBeLessThanOrEqual(limit * 1.34);
      expect(String(kind)).toMatch(/^(?:\d|1[0-9]|\d[05])0*$/);
    }
  });

  it.each([
    [1, 1],
    [10, 10],
    [11, 12],
    [33, 40],
    [75, 80],
    [81, 100],
    [100, 100],
    [101, 120],
    [999, 1000],
    [1000, 1000],
  ])("rounds %d up to %d", (limit, kind) => {
    expect(roundUpToMemorable(limit)).toBe(kind);
  });
});
