import { expect, it } from "vitest";
import { llmReserve } from "../../../src/llm/index.ts";
import { MAX_REQUEST_LENGTH } from "../../../src/llm/llm-reserve.ts";
import { MAX_TOKENS } from "../../../src/llm/token-counts.ts";
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
  [{ max_tokens: 50, n: 3 }, 150],
  [{ max_tokens: 50, n: 1e9 }, 50 * 128],
  [{ max_tokens: 50, n: -1 }, 50],
  [{ max_tokens: 50, n: 2, best_of: 20 }, 1000],
  [{ max_tokens: 50, prompt: ["a", "b", "c"], n: 2 }, 300],
  [{ max_tokens: 50, prompt: [1, 2, 3] }, 50],
  [{ max_tokens: 50, prompt: [[1, 2], [3]] }, 100],
  [{ max_tokens: 50, prompt: [] }, 50],
  [{ max_tokens: Number.MAX_SAFE_INTEGER }, MAX_TOKENS],
  [{ model: "m" }, 1000],
  [{ n: 3 }, 3000],
  [{ max_tokens: null, n: 2, best_of: 4 }, 4000],
  [{ n: 1e9 }, 128_000],
  [{ n: "3" }, 1000],
  [{ prompt: ["a", "b"], n: 2 }, 4000],
  [{ max_tokens: 0 }, 1000],
  [{ max_tokens: -5 }, 1000],
  [{ max_tokens: 5.5 }, 1000],
  [{ max_tokens: "50" }, 1000],
  [{ max_tokens: null }, 1000],
  [{ options: { max_tokens: 50 } }, 1000],
  [[], 1000],
  [null, 1000],
  ["中文".repeat(99), 1000],
])("%j has an output of %i", async (body, output) => {
  const text = JSON.stringify(body);
  expect(await llmReserve()(post(text))).toBe(inputOf(text) + output);
});

it("counts the length of a body that is not JSON, and leaves it to the origin", async () => {
  const request = post("{".repeat(400));
  expect(await llmReserve({ output: 7 })(request)).toBe(107);
  expect(await request.text()).toBe("{".repeat(400));
  expect(await llmReserve()(post(null))).toBe(1000);
  expect(await llmReserve()(post(streamOf('{"max_tokens": 5}', 3)))).toBe(10);
});

it("estimates a body above the maximum by its length, without reading all of it", async () => {
  const body = `{"max_tokens": 5, "x": "${"x".repeat(MAX_REQUEST_LENGTH)}"}`;
  const length = String(body.length);
  const declared = post(body, { "content-length": length });
  expect(await llmReserve()(declared)).toBe(Math.ceil(body.length / 4) + 1000);
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
  });
  const estimate = await llmReserve()(post(endless));
  expect(estimate).toBeGreaterThan(MAX_REQUEST_LENGTH / 4);
  expect(estimate).toBeLessThan(MAX_REQUEST_LENGTH / 2);
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
