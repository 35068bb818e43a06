import { describe, expect, it } from "vitest";
import { MAX_LIMIT } from "../../../src/config/window.ts";
import { llmUsage } from "../../../src/llm/index.ts";
import { MAX_JSON_LENGTH } from "../../../src/llm/llm-usage.ts";
import { MAX_TOKENS } from "../../../src/llm/token-counts.ts";
import { eventStream, eventsOf, streamOf, typedEventsOf } from "./streams.ts";

const usage = llmUsage();
/** Each kind of token has two digits of its own in the sum. */
const kinds = llmUsage({ weights: { input: 1, output: 100, cacheRead: 10_000, cacheWrite: 1e6 } });

const json = (body: unknown, init: ResponseInit = {}) => Response.json(body, init);

describe("the usage in a JSON body", () => {
  it.each<[api: string, body: unknown, sum: number, byKind: number]>([
    [
      "chat completions",
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 12, total_tokens: 21 } },
      21,
      12_09,
    ],
    [
      "chat completions with a cache",
      {
        usage: {
          prompt_tokens: 60,
          completion_tokens: 7,
          total_tokens: 67,
          prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 5 },
        },
      },
      67,
      5_40_07_15,
    ],
    [
      "responses",
      {
        object: "response",
        usage: {
          input_tokens: 36,
          input_tokens_details: { cached_tokens: 30 },
          output_tokens: 87,
          output_tokens_details: { reasoning_tokens: 64 },
          total_tokens: 123,
        },
      },
      123,
      30_87_06,
    ],
    ["embeddings", { data: [], usage: { prompt_tokens: 8, total_tokens: 8 } }, 8, 8],
    [
      "Anthropic's messages",
      {
        type: "message",
        usage: {
          input_tokens: 10,
          cache_creation_input_tokens: 20,
          cache_read_input_tokens: 30,
          output_tokens: 40,
        },
      },
      100,
      20_30_40_10,
    ],
    [
      "Anthropic's messages without a cache",
      {
        usage: {
          input_tokens: 10,
          cache_creation_input_tokens: null,
          cache_read_input_tokens: null,
          output_tokens: 4,
        },
      },
      14,
      4_10,
    ],
    [
      "Gemini, whose thoughts are only in the total",
      { usage: { prompt_tokens: 20, completion_tokens: 19, total_tokens: 62 } },
      62,
      42_20,
    ],
    [
      "LiteLLM, which sends the names of both providers",
      {
        usage: {
          prompt_tokens: 60,
          completion_tokens: 7,
          total_tokens: 67,
          prompt_tokens_details: { cached_tokens: 40 },
          cache_read_input_tokens: 40,
          cache_creation_input_tokens: 0,
        },
      },
      67,
      40_07_20,
    ],
    ["a server that sends only the total", { usage: { total_tokens: 5 } }, 5, 5_00],
    [
      "responses with a cache and without a total",
      {
        usage: {
          input_tokens: 36,
          input_tokens_details: { cached_tokens: 30, cache_write_tokens: 2 },
          output_tokens: 41,
        },
      },
      77,
      2_30_41_04,
    ],
    [
      "a server that adds a total to Anthropic's names",
      {
        usage: {
          input_tokens: 10,
          cache_creation_input_tokens: 20,
          cache_read_input_tokens: 30,
          output_tokens: 40,
          total_tokens: 100,
        },
      },
      100,
      20_30_40_10,
    ],
    [
      "a server whose total omits the cache",
      {
        usage: {
          prompt_tokens: 10,
          completion_tokens: 40,
          total_tokens: 50,
          cache_read_input_tokens: 30,
        },
      },
      80,
      30_40_10,
    ],
  ])("of %s", async (_, body, sum, byKind) => {
    expect(await usage(json(body))).toBe(sum);
    expect(await kinds(json(body))).toBe(byKind);
  });

  it.each<[name: string, body: unknown]>([
    ["no usage", { id: "chatcmpl-1", choices: [] }],
    ["a usage of null", { usage: null }],
    ["a usage that is no object", { usage: 7 }],
    ["an empty usage", { usage: {} }],
    ["a list of usages", { usage: [{ prompt_tokens: 5, completion_tokens: 5 }] }],
    ["a list", [{ usage: { total_tokens: 5 } }]],
    ["a fraction", { usage: { total_tokens: 4000.5 } }],
    ["a negative count", { usage: { total_tokens: -1 } }],
    ["a count as text", { usage: { total_tokens: "5" } }],
    ["a count that no model reaches", { usage: { total_tokens: MAX_TOKENS + 1 } }],
    ["a usage in another object", { metadata: { usage: { total_tokens: 5 } } }],
    ["a usage in the answer", { choices: [{ text: '{"usage":{"total_tokens":5}}' }] }],
    ["null", null],
    ["a number", 5],
  ])("is unknown if the body has %s", async (_, body) => {
    expect(await usage(json(body))).toBeUndefined();
  });

  // A model may have used any number of tokens. The counts that are known are charged if they cost
  // more than the reserve.
  it.each<[usage: object, atLeast: number]>([
    [{ prompt_tokens: 10 }, 10],
    [{ prompt_tokens: 10, completion_tokens: null }, 10],
    [{ prompt_tokens: 10, completion_tokens: -20 }, 10],
    [{ prompt_tokens: 10, completion_tokens: 20.5 }, 10],
    [{ prompt_tokens: 10, completion_tokens: "20" }, 10],
    [{ prompt_tokens: 10, completion_tokens: true }, 10],
    [{ prompt_tokens: 10, completion_tokens: {} }, 10],
    [{ prompt_tokens: 10, completion_tokens: MAX_TOKENS + 1 }, 10],
    [{ prompt_tokens: 10, completion_tokens: "20", output_tokens: 20 }, 10],
    [{ prompt_tokens: "1000", completion_tokens: "500", total_tokens: 0 }, 0],
    [{ prompt_tokens: "1000", completion_tokens: 500 }, 500],
    [{ input_tokens: 10, output_tokens: 20, cache_read_input_tokens: "7" }, 30],
  ])("has a minimum if a count is odd: %j", async (counts, atLeast) => {
    expect(await usage(json({ usage: counts }))).toEqual({ atLeast });
  });

  it("is not final if a count is infinite", async () => {
    const headers = { "content-type": "application/json" };
    const text = '{"usage":{"prompt_tokens":10,"completion_tokens":1e400}}';
    expect(await usage(new Response(text, { headers }))).toEqual({ atLeast: 10 });
  });

  it("is 0 if the provider has counted 0 tokens", async () => {
    const counts = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    expect(await usage(json({ usage: counts }))).toBe(0);
  });

  it.each([
    ["application/json; charset=utf-8", 5],
    ["Application/JSON", 5],
    ["application/vnd.api+json", 5],
    ["application/jsonp", undefined],
    ["text/html", undefined],
    ["text/event-streams", undefined],
    ["", undefined],
  ])("of the type %o is %o", async (type, cost) => {
    const body = streamOf('\ufeff {"usage": {"total_tokens": 5}}', 3);
    const headers = { "content-type": type };
    expect(await usage(new Response(body, { headers }))).toBe(cost);
  });

  it("is unknown if the body breaks off, is not JSON, or is absent", async () => {
    const headers = { "content-type": "application/json" };
    const text = '{"usage":{"total_tokens":5}';
    expect(await usage(new Response(streamOf(text, 9, true), { headers }))).toBeUndefined();
    expect(await usage(new Response(streamOf(text), { headers }))).toBeUndefined();
    expect(await usage(new Response(null, { headers }))).toBeUndefined();
  });

  it("is read up to the maximum length, and the rest of a longer body is cancelled", async () => {
    const headers = { "content-type": "application/json" };
    const end = '","usage":{"total_tokens":5}}';
    const bodyOf = (length: number) => `{"text":"${"x".repeat(length - end.length - 9)}${end}`;
    const longest = streamOf(bodyOf(MAX_JSON_LENGTH), 65_536);
    expect(await usage(new Response(longest, { headers }))).toBe(5);
    let isCancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(0x20)),
      cancel() {
        isCancelled = true;
      },
    });
    expect(await usage(new Response(endless, { headers }))).toBeUndefined();
    expect(isCancelled).toBe(true);
  });

  it("needs no reader of the client's copy of the body", async () => {
    const response = new Response(streamOf("x".repeat(100_000), 1000), {
      headers: { "content-type": "application/json" },
    });
    const [copy] = response.body?.tee() ?? [];
    expect(await usage(new Response(copy, response))).toBeUndefined();
  });
});

const CHUNK = { id: "c1", object: "chat.completion.chunk" };
const word = (content: string) => ({
  ...CHUNK,
  choices: [{ index: 0, delta: { content } }],
  usage: null,
});
const COUNTED = { prompt_tokens: 9, completion_tokens: 12, total_tokens: 21 };

const started = (input: number) => ({
  type: "message_start",
  message: {
    id: "m1",
    usage: {
      input_tokens: input,
      cache_creation_input_tokens: 20,
      cache_read_input_tokens: 30,
      output_tokens: 1,
    },
  },
});
const block = (text: string) => ({
  type: "content_block_delta",
  index: 0,
  delta: { type: "text_delta", text },
});
const delta = (usage: object) => ({
  type: "message_delta",
  delta: { stop_reason: "end_turn" },
  usage,
});
const STOP = { type: "message_stop" };
/** The counts in the middle or at the end of a stream of chat completions. */
const counted = (usage: unknown) => ({ ...CHUNK, choices: [], usage });
const ZEROS = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
const partly = (atLeast: number) => ({ atLeast });

describe("the usage in a stream of events", () => {
  it.each<[api: string, text: string, cost: number | { atLeast: number } | undefined]>([
    [
      "chat completions with include_usage",
      eventsOf(word("Hi"), word("!"), { ...CHUNK, choices: [], usage: COUNTED }, "[DONE]"),
      21,
    ],
    [
      "chat completions without include_usage",
      eventsOf(word("Hi"), word("!"), "[DONE]"),
      undefined,
    ],
    [
      "Groq, in its own field",
      eventsOf(
        { ...CHUNK, x_groq: { id: "r" } },
        { ...CHUNK, x_groq: { usage: COUNTED } },
        "[DONE]",
      ),
      21,
    ],
    [
      "vLLM with continuous_usage_stats, broken off",
      eventsOf(
        { ...word("Hi"), usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 } },
        { ...word("!"), usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 } },
      ),
      partly(11),
    ],
    [
      "vLLM with continuous_usage_stats",
      eventsOf(
        { ...word("Hi"), usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 } },
        { ...word("!"), usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 } },
        "[DONE]",
      ),
      11,
    ],
    [
      "servers that send counts of 0 first",
      eventsOf(counted(ZEROS), word("Hi"), counted(COUNTED), "[DONE]"),
      21,
    ],
    [
      "servers that send only counts of 0",
      eventsOf(counted(ZEROS), word("Hi"), counted(null), "[DONE]"),
      partly(0),
    ],
    [
      "servers that count only the prompt, before the answer",
      eventsOf(counted({ prompt_tokens: 9, completion_tokens: 0 }), word("Hi"), "[DONE]"),
      partly(9),
    ],
    [
      "servers that count the first token only",
      eventsOf(counted({ prompt_tokens: 9, completion_tokens: 1 }), word("Hi"), "[DONE]"),
      partly(10),
    ],
    [
      "servers that send events without content after the counts",
      eventsOf(word("Hi"), counted(COUNTED), word(""), { ...CHUNK, choices: [] }, "[DONE]"),
      21,
    ],
    ["servers that never end a stream", eventsOf(word("Hi"), counted(COUNTED)), partly(21)],
    [
      "an answer with the texts of the ends",
      eventsOf(counted(COUNTED), word("[DONE]"), word('"message_stop"'), word("message_stop")),
      partly(21),
    ],
    [
      "chat completions with an odd count",
      eventsOf(counted({ ...COUNTED, completion_tokens: "12" }), "[DONE]"),
      partly(21),
    ],
    [
      "chat completions with an odd count and a correct one",
      eventsOf(counted({ ...COUNTED, completion_tokens: -1 }), counted(COUNTED), "[DONE]"),
      21,
    ],
    [
      "responses",
      typedEventsOf(
        { type: "response.created", response: { id: "r", usage: null } },
        { type: "response.output_text.delta", delta: '"usage":{"total_tokens":7}' },
        {
          type: "response.completed",
          response: { usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 } },
        },
      ),
      7,
    ],
    [
      "responses that end at max_output_tokens",
      typedEventsOf({
        type: "response.incomplete",
        response: { usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 } },
      }),
      7,
    ],
    [
      "responses that have counts of 0 before the end",
      typedEventsOf(
        { type: "response.created", response: { usage: { input_tokens: 0, output_tokens: 0 } } },
        { type: "response.output_text.done", text: "Hi" },
      ),
      partly(0),
    ],
    [
      "responses that fail without tokens",
      typedEventsOf({
        type: "response.failed",
        response: { usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 } },
      }),
      0,
    ],
    [
      "transcriptions",
      typedEventsOf(
        { type: "transcript.text.delta", delta: "Hi" },
        { type: "transcript.text.done", text: "Hi", usage: { input_tokens: 3, output_tokens: 4 } },
      ),
      7,
    ],
    [
      "Anthropic's messages",
      typedEventsOf(started(10), { type: "ping" }, block("Hi"), delta({ output_tokens: 40 }), {
        type: "message_stop",
      }),
      100,
    ],
    [
      "Anthropic's messages whose delta repeats the input",
      typedEventsOf(
        started(10),
        delta({
          input_tokens: 10,
          cache_creation_input_tokens: 20,
          cache_read_input_tokens: 30,
          output_tokens: 40,
        }),
        STOP,
      ),
      100,
    ],
    [
      "servers that know the input only at the end",
      typedEventsOf(started(0), delta({ input_tokens: 10, output_tokens: 40 }), STOP),
      100,
    ],
    [
      "servers that send an input of 0 at the end",
      typedEventsOf(started(10), delta({ input_tokens: 0, output_tokens: 40 }), STOP),
      100,
    ],
    [
      "several deltas",
      typedEventsOf(started(0), delta({ output_tokens: 2 }), delta({ output_tokens: 9 }), STOP),
      59,
    ],
    [
      "servers whose delta tells the cached part of the input apart",
      typedEventsOf(
        { type: "message_start", message: { usage: { input_tokens: 700, output_tokens: 1 } } },
        block("Hi"),
        delta({
          input_tokens: 8,
          cache_read_input_tokens: 690,
          cache_creation_input_tokens: 0,
          output_tokens: 45,
        }),
        STOP,
      ),
      743,
    ],
    [
      "servers whose delta tells the part written to the cache apart",
      typedEventsOf(
        { type: "message_start", message: { usage: { input_tokens: 700, output_tokens: 1 } } },
        delta({ input_tokens: 8, cache_creation_input_tokens: 692, output_tokens: 45 }),
        STOP,
      ),
      745,
    ],
    [
      "servers whose whole input was in the cache",
      typedEventsOf(
        { type: "message_start", message: { usage: { input_tokens: 700, output_tokens: 1 } } },
        delta({ input_tokens: 0, cache_read_input_tokens: 700, output_tokens: 45 }),
        STOP,
      ),
      745,
    ],
    [
      "servers whose delta corrects the cached part to 0",
      typedEventsOf(
        started(10),
        delta({
          input_tokens: 60,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 0,
          output_tokens: 40,
        }),
        STOP,
      ),
      100,
    ],
    [
      "servers that send an input and a cache of 0 at the end",
      typedEventsOf(
        started(10),
        delta({
          input_tokens: 0,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 0,
          output_tokens: 40,
        }),
        STOP,
      ),
      100,
    ],
    [
      "servers that know a lower input and a lower output at the end",
      typedEventsOf(
        { type: "message_start", message: { usage: { input_tokens: 90, output_tokens: 8 } } },
        delta({ input_tokens: 70, output_tokens: 3 }),
        STOP,
      ),
      73,
    ],
    [
      "messages whose start has a total, and whose delta has the cache",
      typedEventsOf(
        {
          type: "message_start",
          message: { usage: { input_tokens: 700, output_tokens: 1, total_tokens: 701 } },
        },
        delta({ input_tokens: 8, cache_read_input_tokens: 692, output_tokens: 45 }),
        STOP,
      ),
      745,
    ],
    [
      "messages with an event without counts after the final counts",
      typedEventsOf(
        started(10),
        delta({ output_tokens: 40 }),
        { type: "message_delta", usage: {} },
        { type: "message_delta", usage: { input_tokens: null, output_tokens: null } },
        STOP,
      ),
      100,
    ],
    [
      "chat completions whose estimate is too high at first",
      eventsOf(
        counted({ prompt_tokens: 50, completion_tokens: 1, total_tokens: 51 }),
        word("Hi"),
        counted(COUNTED),
        "[DONE]",
      ),
      21,
    ],
    [
      "chat completions that name the cached part only at first",
      eventsOf(
        counted({
          prompt_tokens: 60,
          completion_tokens: 1,
          prompt_tokens_details: { cached_tokens: 40 },
        }),
        word("Hi"),
        counted({ prompt_tokens: 60, completion_tokens: 7 }),
        "[DONE]",
      ),
      67,
    ],
    [
      "Gemini's compatible API, whose counts grow",
      eventsOf(
        { ...word("Hi"), usage: { prompt_tokens: 20, completion_tokens: 3, total_tokens: 30 } },
        { ...word("!"), usage: { prompt_tokens: 20, completion_tokens: 19, total_tokens: 62 } },
        "[DONE]",
      ),
      62,
    ],
    [
      "responses with a cache and without a total",
      typedEventsOf(
        { type: "response.in_progress", response: { usage: { input_tokens: 36 } } },
        {
          type: "response.completed",
          response: {
            usage: {
              input_tokens: 36,
              input_tokens_details: { cached_tokens: 30 },
              output_tokens: 4,
            },
          },
        },
      ),
      40,
    ],
    [
      "servers that write one event over several lines",
      eventsOf(word("Hi"))
        .concat('data: {"choices": [],\ndata:  "usage": {"prompt_tokens": 9,\n')
        .concat('id: 7\n: comment\ndata:   "completion_tokens": 12,\n')
        .concat('data:   "total_tokens": 21\ndata: }}\n\ndata: [DONE]\n\n'),
      21,
    ],
    [
      "servers that write one event over several lines, with CR LF",
      'data: {"usage":\r\ndata: {"total_tokens": 21}}\r\n\r\ndata: [DONE]\r\n\r\n',
      21,
    ],
    [
      "servers that write no blank lines",
      eventsOf(word("Hi"), counted(COUNTED), "[DONE]").replaceAll("\n\n", "\n"),
      21,
    ],
    ["a delta without counts", typedEventsOf(started(10), delta({}), STOP), partly(61)],
    [
      "a delta with an odd count",
      typedEventsOf(started(10), delta({ output_tokens: "7000" }), STOP),
      partly(61),
    ],
    [
      "an odd count at the start",
      typedEventsOf(started(-1), delta({ output_tokens: 40 }), STOP),
      partly(90),
    ],
    [
      "Anthropic's messages without the last event",
      typedEventsOf(started(10), delta({ output_tokens: 40 })),
      partly(100),
    ],
    ["messages that end before the answer", typedEventsOf(started(10), STOP), partly(61)],
  ])("of %s", async (_, text, cost) => {
    for (const bytes of [Number.POSITIVE_INFINITY, 1, 7, 64]) {
      expect(await usage(eventStream(text, bytes))).toEqual(cost);
    }
  });

  it("is read even if no blank line follows the last event", async () => {
    const text = eventsOf(counted(COUNTED), "[DONE]").trimEnd();
    expect(await usage(eventStream(text))).toBe(21);
    expect(await usage(eventStream(text.slice(0, -1)))).toEqual({ atLeast: 21 });
  });

  it("is final if the connection breaks after the end, and a minimum if it breaks before", async () => {
    const headers = { "content-type": "text/event-stream" };
    const broken = (...events: unknown[]) =>
      usage(new Response(streamOf(eventsOf(...events), 10, true), { headers }));
    expect(await broken(word("Hi"), counted(COUNTED), "[DONE]")).toBe(21);
    expect(await broken(word("Hi"), counted(COUNTED))).toEqual({ atLeast: 21 });
  });

  // Anthropic sends one output token at the start. A client that hangs up before the end must not
  // pay only for this token.
  it("has a minimum if Anthropic's stream breaks off before the output is counted", async () => {
    const text = typedEventsOf(started(5000), block("Hi"), block("!"));
    expect(await usage(eventStream(text))).toEqual({ atLeast: 5051 });
    const cost = await llmUsage({ weights: { input: 0 } })(eventStream(text));
    expect(cost).toEqual({ atLeast: 1 });
  });
});

describe("an error response", () => {
  const error = { type: "error", error: { type: "overloaded_error" } };
  const html = (status: number) =>
    new Response("<html>", { status, headers: { "content-type": "text/html" } });

  it.each<[name: string, response: () => Response, cost: number | undefined]>([
    ["400 with JSON", () => json(error, { status: 400 }), 0],
    ["429 with JSON", () => json(error, { status: 429 }), 0],
    ["529 with JSON", () => json(error, { status: 529 }), 0],
    ["404 with HTML", () => html(404), 0],
    ["500 of vLLM", () => json({ object: "error", message: "m" }, { status: 500 }), 0],
    [
      "502 of Weir or of another proxy",
      () => json({ type: "about:blank", status: 502 }, { status: 502 }),
      undefined,
    ],
    ["503 with a text as the error", () => json({ error: "down" }, { status: 503 }), undefined],
    [
      "500 with broken JSON",
      () =>
        new Response('{"error":{', {
          status: 500,
          headers: { "content-type": "application/json" },
        }),
      undefined,
    ],
    ["502 with HTML", () => html(502), undefined],
    ["504 without a body", () => new Response(null, { status: 504 }), undefined],
    ["200 with an error", () => json(error), undefined],
    ["500 with usage", () => json({ usage: { total_tokens: 5 } }, { status: 500 }), 5],
  ])("of %s", async (_, response, cost) => {
    expect(await usage(response())).toBe(cost);
  });
});

describe("weights", () => {
  const response = () =>
    json({
      usage: { input_tokens: 30, output_tokens: 4, cache_read_input_tokens: 7 },
    });

  it.each([
    [{}, 41],
    [{ input: 0.1 }, 8],
    [{ input: 0 }, 4],
    [{ output: 0 }, 37],
    [{ output: 5, cacheRead: 0.1 }, 51],
    [{ input: 0.1, output: 0, cacheRead: 0 }, 3],
    [{ output: undefined }, 41],
  ])("%o cost %i", async (weights, cost) => {
    expect(await llmUsage({ weights })(response())).toBe(cost);
  });

  it.each<[weights: object, message: string]>([
    [{ input: -1 }, "weights.input: must be a number from 0 to 1000000"],
    [{ output: Number.NaN }, "weights.output: must be a number from 0 to 1000000"],
    [
      { outputs: 1 },
      "weights.outputs: unknown; the weights are input, output, cacheRead, cacheWrite",
    ],
  ])("%o are refused", (weights, message) => {
    expect(() => llmUsage({ weights })).toThrow(message);
  });

  it("give at most the highest cost of a rule", async () => {
    const [MOST, weight] = [MAX_TOKENS, 1_000_000];
    const body = {
      usage: {
        input_tokens: MOST,
        output_tokens: MOST,
        cache_read_input_tokens: MOST,
        cache_creation_input_tokens: MOST,
      },
    };
    const settle = llmUsage({ weights: { input: weight, output: weight } });
    expect(await settle(json(body))).toBe(4 * MOST * weight);
    expect(4 * MOST * weight).toBeLessThan(MAX_LIMIT);
  });
});
