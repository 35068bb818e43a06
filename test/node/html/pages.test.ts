import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { SCRIPT, STYLE } from "../../../cli/html/assets.generated.ts";
import { replayPage } from "../../../cli/html/replay-page.ts";
import type { ReplayReport } from "../../../cli/replay/report.ts";
import { withNumbers, withTexts } from "./changed.ts";
import { COMPARISON } from "./comparison.ts";
import { EMPTY_REPLAY, replayOf } from "./fixtures.ts";

const FULL_REPLAY: ReplayReport = replayOf(4, {
  isPartial: true,
  failed: [{ option: "--max-denied", allowed: 5, clients: 854 }],
  comparison: COMPARISON,
});

/** The texts of reports that come from no log and no configuration. */
const WORDS: ReadonlySet<string> = new Set([
  ...["enforce", "shadow", "mark", "added", "removed", "changed", "same"],
  ...["Redis commands", "--max-denied"],
]);

const kib = (page: string) => Buffer.byteLength(page) / 1024;

/** Returns the page without its script and its style sheet, which are Weir's own. */
function contentOf(page: string): string {
  const parts = page.split(STYLE).join("").split(SCRIPT);
  expect(parts).toHaveLength(2);
  return parts.join("");
}

describe.each([
  ["a replay", () => replayPage(replayOf(20))],
  ["a full replay", () => replayPage(FULL_REPLAY)],
  ["a replay without requests", () => replayPage(EMPTY_REPLAY)],
])("the page of %s", (_, page) => {
  it("is the same for the same report", () => {
    expect(page()).toBe(page());
  });

  it("names no address that a browser could load", () => {
    const addresses = [...page().matchAll(/(?:src|href|action)="([^"]*)"/g)].map(([, url]) => url);
    expect(addresses.length).toBeGreaterThan(1);
    expect(addresses.filter((url) => !/^(#|data:image\/svg\+xml,)/.test(url ?? ""))).toEqual([]);
    expect(contentOf(page())).not.toMatch(/https?:\/\/(?!www\.w3\.org)/);
  });

  it("allows only its own script and style sheet", () => {
    const policy = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(
      page(),
    )?.[1];
    const hash = (text: string) => createHash("sha256").update(text).digest("base64");
    const [script, style] = ["script", "style"].map(
      (name) => new RegExp(`<${name}>(.*?)</${name}>`, "s").exec(page())?.[1] ?? "",
    );
    expect(policy?.replaceAll("&#39;", "'").split("; ")).toEqual([
      "default-src 'none'",
      `script-src 'sha256-${hash(script ?? "")}'`,
      `style-src 'sha256-${hash(style ?? "")}'`,
      "img-src data:",
      "base-uri 'none'",
      "form-action 'none'",
    ]);
  });

  it("has different ids, and links only to ids that exist", () => {
    const content = contentOf(page());
    const ids = [...content.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    const targets = content.matchAll(/(?:href="#|url\(#|aria-labelledby=")([^")]*)/g);
    expect([...targets].map(([, id]) => id).filter((id) => !ids.includes(id))).toEqual([]);
  });
});

describe("every text of a report", () => {
  /** Texts that pages do not show: they only select words or the unit of a chart. */
  const NOT_SHOWN = /^(\d{4}-\d\d-\d\dT|not-logged|no-country)/;

  it("is escaped", () => {
    const marks = new Map<string, string>();
    const marked = withTexts(FULL_REPLAY, (text) => {
      if (NOT_SHOWN.test(text)) return `"><script>time</script>`;
      marks.set(text, `"><script>${marks.size}</script>'&`);
      return marks.get(text) ?? "";
    });
    const content = contentOf(replayPage(marked));
    expect(content.match(/<script/g)).toHaveLength(1);
    expect(content).not.toContain(`">&lt;script`);
    const missing = [...marks].filter(
      ([, mark]) =>
        !content.includes(`&lt;script&gt;${/\d+/.exec(mark)?.[0]}&lt;/script&gt;&#39;&amp;`),
    );
    expect(missing.map(([text]) => text)).toEqual([]);
  });

  it("loses characters that nobody sees and that change the order of others", () => {
    const page = replayPage(
      withTexts(FULL_REPLAY, (text) => (WORDS.has(text) ? text : `a\u202e\u0000\u001b[31m${text}`)),
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
    expect(contentOf(page)).not.toMatch(/[\u202e\u0000\u001b]/);
  });

  it("is shortened if it is very long", () => {
    const long = "x".repeat(50_000);
    expect(kib(replayPage(withTexts(FULL_REPLAY, () => long)))).toBeLessThan(1500);
  });
});

describe("the size of a page", () => {
  it("is below 300 KiB for 20 rules", () => {
    expect(kib(replayPage(replayOf(20)))).toBeLessThan(300);
  });

  it("is below 1 MiB for 200 rules", () => {
    expect(kib(replayPage(replayOf(200)))).toBeLessThan(1024);
  });
});

describe("numbers that no log has", () => {
  it.each([0, 1e15, Number.MAX_SAFE_INTEGER, 1e300])("are shown: %d", (number) => {
    const page = contentOf(replayPage(withNumbers(FULL_REPLAY, () => number)));
    expect(page).not.toMatch(/NaN|undefined|Infinity/);
  });
});
