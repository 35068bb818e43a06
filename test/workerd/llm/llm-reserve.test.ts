import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  foldNames,
  MAX_DEPTH,
  MAX_OUTSIDE_TEXTS,
  parseObject,
} from "../../../src/llm/body-text.ts";
import { llmReserve } from "../../../src/llm/index.ts";
import { MAX_REQUEST_LENGTH } from "../../../src/llm/llm-reserve.ts";
import { MAX_TOKENS } from "../../../src/llm/token-counts.ts";
import { propertyRuns } from "../../suite/runs.ts";
import { streamOf } from "./streams.ts";

const URL = "https://llm.example.com/v1/chat/completions";
const post = (body: BodyInit | null, headers: HeadersInit = {}) =>
  new Request(URL, { method: "POST", body, headers });
/** The tokens of this text, at four bytes each. */
const inputOf = (text: string) => Math.ceil(new TextEncoder().encode(text).length / 4);

it.each<[body: unknown, output: number]>([
  [{ max_tokens: 50 }, 50],
  [{ max_completion_tokens: 60 }, 60],
  [{ max_output_tokens: 70 }, 70],
  [{ max_tokens: 50, max_completion_tokens: 60 }, 60],
  [{ Max_Tokens: 50 }, 50],
  [{ max_tokens: 50, n: 3 }, 150],
  [{ max_tokens: 50, n: 500 }, 25_000],
  [{ max_tokens: 50, n: 2, best_of: 20 }, 1000],
  [{ max_tokens: 50, prompt: ["a", "b", "c"], n: 2 }, 300],
  [{ max_tokens: 50, prompt: [1, "a", "b"] }, 150],
  [{ max_tokens: 50, prompt: [] }, 50],
  [{ max_tokens: 50, thinking: { type: "enabled", budget_tokens: 40 } }, 50],
  [{ max_tokens: 50, thinking: { type: "enabled", budget_tokens: 90 } }, 90],
  [{ thinking: { budget_tokens: 90 } }, 1000],
  [{ max_tokens: 50, thinking: null }, 50],
  [{ model: "m" }, 1000],
  [{ n: 3 }, 3000],
  [{ max_tokens: null, n: 2, best_of: 4 }, 4000],
  [{ n: null, best_of: null }, 1000],
  [{ prompt: ["a", "b"], n: 2 }, 4000],
  [{ options: { max_tokens: 50 } }, 1000],
  [{ max_tokens: 50, tools: [{ max_tokens: 1, n: 7 }], text: '"n": 9, \\"max_tokens": 1 {[' }, 50],
])("%j has an output of %i", async (body, output) => {
  const text = JSON.stringify(body);
  expect(await llmReserve()(post(text))).toBe(inputOf(text) + output);
});

// A server may read such a value as a number, or as no limit.
const ODD = ["-5", "-1", "0", "5.5", '"50"', '""', "1e999", "1e17", "true", "false", "[]", "{}"];

describe("the output is the maximum if the body is", () => {
  const fields = ["max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of"];
  it.each([
    ...fields.flatMap((field) => ODD.map((value) => `{"${field}": ${value}}`)),
    '{"max_tokens": 50, "max_completion_tokens": -1}',
    '{"max_tokens": -1, "n": 2}',
    '{"max_tokens": 50, "thinking": {"budget_tokens": -1}}',
    '{"max_tokens": 50, "n": 1e9}',
    '{"max_tokens": 9000000000000000}',
    // Some servers use the first of these fields.
    '{"max_tokens": 100000, "max_tokens": 1}',
    '{"max_tokens": 1, "messages": [{"a": 1, "a": 2}]}',
    '{"max_tokens": 100000, "max\\u005ftokens": 1}',
    // Servers written in Go ignore the case of names.
    '{"max_tokens": 1, "MAX_TOKENS": 100000}',
    // These servers also treat the long s and the Kelvin sign as letters of ASCII.
    '{"max_tokens": 1, "max_token\u017f": 100000}',
    '{"max_tokens": 1, "MAX_TO\u212aENS": 100000}',
    '{"max_tokens": 1, "max_to\\u212aen\\u017f": 100000}',
    // They merge two objects, or use the last one.
    '{"max_tokens": 1, "thinking": {"budget_tokens": 1, "budget_tokens": 100000}}',
    '{"max_tokens": 1, "thinking": {"budget_tokens": 1, "Budget_Tokenſ": 100000}}',
    '{"max_tokens": 1, "thinking": {"budget_tokens": 100000}, "Thinking": {}}',
    // Lenient parsers skip comments, and read single quotes.
    '{"max_tokens": 1, /* " */ "max_tokens": 100000, "a": "*/"}',
    "{'max_tokens': 100000}",
    // Python parses this, and JSON.parse does not.
    '{"max_tokens": 100000, "x": NaN}',
    "[]",
    '[{"max_tokens": 1}]',
    "null",
    '"text"',
    "{".repeat(400),
    '{"a":'.repeat(100_000),
  ])("%.60s", async (text) => {
    expect(await llmReserve({ output: 0 })(post(text))).toBe(inputOf(text) + MAX_TOKENS);
  });

  it.each(["whole", "in pieces"])(
    "bytes that are not UTF-8, in a body that arrives %s",
    async (name) => {
      const text = '{"max_tok_ens": 100000}';
      const bytes = Uint8Array.from([...text].map((c) => (c === "_" ? 0xff : c.charCodeAt(0))));
      const body = name === "whole" ? bytes : new Blob([bytes]).stream();
      const request = new Request("https://example.com", { method: "POST", body });
      const tokens = await llmReserve()(request);
      expect(tokens).toBeGreaterThanOrEqual(MAX_TOKENS);
    },
  );

  it("more than 2,048 different names, and not as many equal ones", async () => {
    const objectWith = (names: number) =>
      JSON.stringify(Object.fromEntries(Array.from({ length: names }, (_, at) => [`n${at}`, 1])));
    const small = JSON.stringify({ max_tokens: 1, messages: Array(3000).fill({ role: "x" }) });
    const tokensOf = (text: string) => llmReserve({ output: 0 })(post(text));
    expect(await tokensOf(objectWith(2048))).toBeLessThan(MAX_TOKENS);
    expect(await tokensOf(objectWith(2049))).toBeGreaterThanOrEqual(MAX_TOKENS);
    expect(await tokensOf(small)).toBeLessThan(MAX_TOKENS);
  });

  it("JSON in UTF-16, which Python reads", async () => {
    const bytes = Uint8Array.from([...'{"max_tokens": 9}'].flatMap((c) => [c.charCodeAt(0), 0]));
    expect(await llmReserve()(post(bytes))).toBe(Math.ceil(bytes.length / 4) + MAX_TOKENS);
  });
});

describe("a name in a form that a common server reads as the same name", () => {
  const NAMES = ["max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of"];
  const escaped = (name: string, at: number) =>
    `${name.slice(0, at)}\\u${name.charCodeAt(at).toString(16).padStart(4, "0")}${name.slice(at + 1)}`;
  const formsOf = (name: string) =>
    [
      name.toUpperCase(),
      name.replace("s", "\u017f"),
      name.replace("s", "\\u017F"),
      name.replace("k", "\u212a"),
      name.replace("k", "\\u212a"),
      name.replace("i", "\u0131"),
      name.replace("i", "\u0130"),
      escaped(name, 0),
      escaped(name, name.length - 1),
      escaped(name.toUpperCase(), 0),
    ].filter((form) => form !== name);
  const vectors = NAMES.flatMap((name) => formsOf(name).map((form) => [name, form] as const));

  it.each(vectors)("%s as %s: alone, first, last and twice", async (name, form) => {
    const output = async (text: string) => (await llmReserve()(post(text))) - inputOf(text);
    const answers = name === "n" || name === "best_of";
    expect(await output(`{"${form}": 70}`)).toBe(answers ? 70_000 : 70);
    for (const text of [
      `{"${name}": 1, "${form}": 70}`,
      `{"${form}": 70, "x": {}, "${name}": 1}`,
      `{"${form}": 70, "${form}": 1}`,
    ]) {
      expect(await output(text)).toBe(MAX_TOKENS);
    }
  });

  it.each(formsOf("budget_tokens").flatMap((form) => formsOf("thinking").map((by) => [by, form])))(
    "%s with %s: alone, twice and merged",
    async (thinking, form) => {
      const output = async (text: string) => (await llmReserve()(post(text))) - inputOf(text);
      const rest = '"max_tokens": 50';
      expect(await output(`{${rest}, "${thinking}": {"${form}": 7000}}`)).toBe(7000);
      for (const text of [
        `{${rest}, "thinking": {"budget_tokens": 1, "${form}": 7000}}`,
        `{${rest}, "${thinking}": {"${form}": 7000, "budget_tokens": 1}}`,
        `{${rest}, "thinking": {"${form}": 7000}, "${thinking}": {}}`,
        `{"${thinking}": {"${form}": 7000}, ${rest}, "thinking": null}`,
      ]) {
        expect(await output(text)).toBe(MAX_TOKENS);
      }
    },
  );

  it.each([
    ["1e3", 1000],
    ["1.0", 1],
    ["7E1", 70],
    ["-0", MAX_TOKENS],
    ["-1", MAX_TOKENS],
    ["4294967297", MAX_TOKENS],
    ["9007199254740993", MAX_TOKENS],
    ['"4096"', MAX_TOKENS],
  ])("the number %s is read as %i", async (number, expected) => {
    const text = `{"max_tokens": ${number}}`;
    expect(await llmReserve()(post(text))).toBe(inputOf(text) + expected);
  });
});

describe("a body at a bound", () => {
  const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
  const outside = (length: number) => `{"a":[${" ".repeat(length - 6)}]}`;

  it.each([
    ["the maximum depth", nested(MAX_DEPTH), nested(MAX_DEPTH + 1)],
    ["the maximum outside of texts", outside(MAX_OUTSIDE_TEXTS), outside(MAX_OUTSIDE_TEXTS + 1)],
  ])("has known tokens at %s, and unknown tokens above it", async (_, known, unknown) => {
    expect(await llmReserve()(post(known))).toBe(inputOf(known) + 1000);
    expect(await llmReserve()(post(unknown))).toBe(inputOf(unknown) + MAX_TOKENS);
  });

  it.each([
    ["90,000 fields", `{${Array.from({ length: 90_000 }, (_, n) => `"${n}":1`).join()}}`],
    ["90,000 fields inside", `{"a":{${Array.from({ length: 90_000 }, (_, n) => `"${n}":1`)}}}`],
    ["many fractions", `{"prompt":[${"0.5,".repeat(30_000)}1]}`],
    ["many numbers in an object", `{"prompt":[{"a":${"1".repeat(80_000)}}]}`],
    ["white space", `{"a":${" ".repeat(300_000)}1}`],
    ["a long number", `{"a":${"1".repeat(300_000)}}`],
  ])("has unknown tokens with %s, and is not read further", async (_, text) => {
    expect(await llmReserve()(post(text))).toBe(inputOf(text) + MAX_TOKENS);
  });

  it("has known tokens with a megabyte of text and thousands of messages", async () => {
    const message = { role: "user", content: `${'say "hello"\n'.repeat(9)}` };
    const text = JSON.stringify({ max_tokens: 5, messages: Array(6000).fill(message) });
    expect(text.length).toBeGreaterThan(900_000);
    expect(await llmReserve()(post(text))).toBe(inputOf(text) + 5);
  });
});

describe("a list of whole numbers counts as one token for each number", () => {
  const reserve = llmReserve({ output: 0 });
  const numbers = (count: number, first = 90_000) =>
    Array.from({ length: count }, (_, at) => first + (at % 9000));

  it.each<[name: string, text: string, tokens: number, rest: string]>([
    ["an input", JSON.stringify({ input: numbers(16_000) }), 16_000, '{"input":[]}'],
    [
      "several inputs",
      JSON.stringify({ model: "m", input: [numbers(30), numbers(70, 1), [5]] }),
      101,
      '{"model":"m","input":[[],[],[]]}',
    ],
    ["a prompt", JSON.stringify({ prompt: numbers(7) }), 7, '{"prompt":[]}'],
    ["white space", '{"input": [ 1,\n\t22 ,333\r\n ] }', 3, '{"input": [] }'],
    ["no number", '{"input": []}', 0, '{"input": []}'],
    ["a text that looks like a list", '{"input": "[1,2,3]"}', 0, '{"input": "[1,2,3]"}'],
    ["a text after a quote", '{"input": "\\"[1,2,3]"}', 0, '{"input": "\\"[1,2,3]"}'],
    ["a list with a text", '{"input": [1, "a", 2]}', 0, '{"input": [1, "a", 2]}'],
    ["fractions and signs", '{"input": [0.5, -1, 1e3]}', 0, '{"input": [0.5, -1, 1e3]}'],
    ["the longest body", `{"input":[${"1,".repeat(500_000)}1]}`, 500_001, '{"input":[]}'],
  ])("%s", async (_, text, tokens, rest) => {
    expect(await reserve(post(text))).toBe(tokens + inputOf(rest));
  });

  it("but several tokens if a number has more digits than any token", async () => {
    const text = `{"input":[${"1".repeat(700)}]}`;
    expect(await reserve(post(text))).toBe(100 + inputOf('{"input":[]}'));
  });

  it("and each list is still one prompt", async () => {
    const one = JSON.stringify({ max_tokens: 50, prompt: numbers(20) });
    expect(await llmReserve()(post(one))).toBe(20 + inputOf('{"max_tokens":50,"prompt":[]}') + 50);
    const text = JSON.stringify({ max_tokens: 50, prompt: [numbers(20), numbers(10)] });
    const rest = inputOf('{"max_tokens":50,"prompt":[[],[]]}');
    expect(await llmReserve()(post(text))).toBe(30 + rest + 100);
  });

  it.each(["[1,2", "[1,]2]", '{"max_tokens":1,"a":[1,2],"max_tokens":9}', "{[1]:2}"])(
    "which hide no fault of the body: %s",
    async (text) => {
      expect(await reserve(post(text))).toBeGreaterThanOrEqual(MAX_TOKENS);
    },
  );
});

it("reads the same fields as JSON.parse", () => {
  const member = fc.tuple(fc.string({ unit: "grapheme", maxLength: 8 }), fc.jsonValue());
  fc.assert(
    fc.property(fc.array(member, { maxLength: 6 }), fc.nat(2), (members, space) => {
      const json = JSON.stringify(Object.fromEntries(members), null, space);
      const expected = Object.entries(JSON.parse(json) as Record<string, unknown>);
      const fields = foldNames(parseObject(json) ?? {});
      const fold = (name: string) => name.replace(/[ıİ]/g, "i").toLowerCase().replaceAll("ſ", "s");
      if (new Set(expected.map(([name]) => fold(name))).size < expected.length) {
        return expect(fields).toBeUndefined();
      }
      expect(fields).toEqual(new Map(expected.map(([name, value]) => [fold(name), value])));
    }),
    propertyRuns(500),
  );
});

it("reads a body of any form, and leaves it to the origin", async () => {
  const text = '{"max_tokens": 5}';
  const request = post(text);
  expect(await llmReserve()(request)).toBe(10);
  expect(await request.text()).toBe(text);
  expect(await llmReserve()(post(streamOf(text, 3)))).toBe(10);
  expect(await llmReserve()(post(`\ufeff${text}`))).toBe(10);
  expect(await llmReserve()(post(text, { "content-encoding": " Identity " }))).toBe(10);
  expect(await llmReserve()(post(null))).toBe(1000);
  expect(await llmReserve()(post(""))).toBe(1000);
});

it.each(["gzip", "br", "identity, gzip", "unknown"])(
  "costs the maximum if the body is encoded with %s",
  async (encoding) => {
    const request = post('{"max_tokens": 5}', { "content-encoding": encoding });
    expect(await llmReserve()(request)).toBe(2 * MAX_TOKENS);
  },
);

it.each<[type: string, isKnown: boolean]>([
  ["application/json", true],
  ["application/json; charset=utf-8", true],
  ['application/json;charset="UTF8"; a=b', true],
  ["application/json; charset=utf-7", false],
  ["application/json; charset=utf-7-imap", false],
  ["application/json; charset=utf-8; charset=utf-7", false],
  ["application/json; charset=utf-8, application/json; charset=utf-7", false],
  ["application/json; charset=utf-16", false],
  ["application/json; charset", false],
])("reads the body by the type %s: %s", async (type, isKnown) => {
  const text = '{"max+AF8-tokens": 100000}';
  const expected = isKnown ? inputOf(text) + 1000 : 2 * MAX_TOKENS;
  expect(await llmReserve()(post(text, { "content-type": type }))).toBe(expected);
});

it("costs the maximum if the body arrives in many small pieces", async () => {
  const text = JSON.stringify({ a: "x".repeat(2000) });
  expect(await llmReserve()(post(streamOf(text, 512)))).toBe(inputOf(text) + 1000);
  expect(await llmReserve()(post(streamOf(text, 20)))).toBe(inputOf(text) + 1000);
  expect(await llmReserve()(post(streamOf(text, 1)))).toBe(2 * MAX_TOKENS);
});

it.each([{ output: 0 }, { weights: { output: 0 } }, {}])(
  "costs at least 1 with %j, so that a client without quota is denied at once",
  async (options) => {
    const reserve = llmReserve(options);
    expect(reserve.atLeast).toBe(1);
    expect(await reserve(post(null))).toBeGreaterThanOrEqual(1);
  },
);

it("costs the maximum if the body is too long, with and without a stated length", async () => {
  const body = `{"max_tokens": 5, "x": "${"x".repeat(MAX_REQUEST_LENGTH)}"}`;
  const declared = post(body, { "content-length": String(body.length) });
  expect(await llmReserve()(declared)).toBe(2 * MAX_TOKENS);
  expect(await llmReserve()(post(streamOf(body, 65_536)))).toBe(2 * MAX_TOKENS);
  const weights = { input: 2, output: 0 };
  expect(await llmReserve({ weights })(post(streamOf(body, 65_536)))).toBe(2 * MAX_TOKENS);
  let pulls = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulls++;
      controller.enqueue(new Uint8Array(65_536));
    },
  });
  expect(await llmReserve()(post(endless))).toBe(2 * MAX_TOKENS);
  expect(pulls).toBeLessThan((2 * MAX_REQUEST_LENGTH) / 65_536);
});

it("uses weights", async () => {
  const text = '{"max_tokens": 50}';
  const weights = { input: 0.1, output: 5 };
  expect(await llmReserve({ weights })(post(text))).toBe(251);
});

it("reserves its own number of tokens for each of several answers", async () => {
  const text = '{"n": 5}';
  expect(await llmReserve({ output: 40 })(post(text))).toBe(inputOf(text) + 200);
  expect(await llmReserve({ output: 0 })(post(text))).toBe(inputOf(text));
});

it.each([-1, 0.5, Number.NaN, MAX_TOKENS + 1])("refuses an output of %d", (output) => {
  expect(() => llmReserve({ output })).toThrow("output: must be a whole number");
});
