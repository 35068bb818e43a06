import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { fetchInTime } from "../../types/consumer.ts";

// The function that docs/responses.md gives to the consumers of an API.

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const denial = (status: number, seconds: number) =>
  new Response(null, { status, headers: { "retry-after": `${seconds}` } });

/** Answers calls of `fetch` in order. @returns the status that the caller gets, and its waits in seconds */
async function callWith(...answers: Response[]) {
  const calledAt: number[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => {
    calledAt.push(Date.now());
    return answers.shift() as Response;
  });
  const called = fetchInTime("https://api.example.com/");
  await vi.runAllTimersAsync();
  const { status } = await called;
  const waits = calledAt.slice(1).map((at, index) => (at - (calledAt[index] as number)) / 1000);
  return { status, waits };
}

it("waits for Retry-After after a 429", async () => {
  const answers = [denial(429, 42), new Response("ok")];
  expect(await callWith(...answers)).toEqual({ status: 200, waits: [42] });
});

it("doubles the wait after each 503, and gives up after five attempts", async () => {
  const answers = Array.from({ length: 5 }, () => denial(503, 5));
  expect(await callWith(...answers)).toEqual({ status: 503, waits: [5, 10, 20, 40] });
});

it.each([
  ["a wait of more than a minute", denial(429, 61)],
  ["a 503 without Retry-After", new Response(null, { status: 503 })],
  ["another error", denial(502, 5)],
])("does not repeat after %s", async (_, answer) => {
  expect(await callWith(answer)).toEqual({ status: answer.status, waits: [] });
});
