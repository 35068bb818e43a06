import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type LlmProvider, type Script, startLlmProvider } from "../../../dev/llm-provider.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { open, send } from "../support/client.ts";
import { REMOTE_STORES, useServers } from "../support/servers.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const STREAMS = 50;
const BUDGET = 1_000_000;
/** A budget for only a part of the streams. */
const SMALL_BUDGET = 20_000;

const rule = (name: string, limit: number) => ({
  name,
  match: { methods: ["POST"], paths: [`/${name}/*`] },
  key: "header:x-api-key",
  limit,
  window: "52w",
  cost: { reserve: "custom:estimate", settle: "custom:usage" },
});
const RULES = [rule("large", BUDGET), rule("small", SMALL_BUDGET)] as ConfigInput["rules"];

/** The Worker limits the calls. For a GET request, it returns the quota that is left. */
const main = (config: ConfigInput) => `
  import { CounterObject, defineConfig, llmReserve, llmUsage, weir, WeirService } from "./weir.mjs";
  const costs = { estimate: llmReserve({ output: 1000 }) };
  const settle = { usage: llmUsage() };
  const config = defineConfig({ ...${JSON.stringify(config)}, custom: { costs, settle } });
  const limiter = weir(config);
  export class Limits extends WeirService { config = config; }
  export default {
    async fetch(request, env, ctx) {
      if (request.method === "POST") return limiter.fetch(request, env, ctx);
      const rule = new URL(request.url).pathname.slice(1);
      const key = request.headers.get("x-api-key");
      const [{ remaining }] = await ctx.exports.Limits.getValue(rule, { key });
      return Response.json(remaining);
    },
  };
  export { CounterObject };
`;

/** How a stream ends. */
type End = "complete" | "client hangs up" | "provider breaks off" | "error";

interface Call {
  readonly path: string;
  readonly body: string;
  readonly end: End;
  readonly script: Script;
  /** The tokens that `llmReserve` estimates. */
  readonly reserve: number;
  /** The expected charge in the end. */
  readonly charge: number;
}

const ENDS: readonly End[] = [
  "complete",
  "complete",
  "client hangs up",
  "complete",
  "provider breaks off",
  "complete",
  "error",
];
const APIS = ["/v1/chat/completions", "/v1/messages"];

/** Creates different calls: both APIs, all ends, and answers above and below the estimate. */
function callAt(index: number, rule: string): Call {
  const end = ENDS[index % ENDS.length] as End;
  const maxTokens = 500 + 13 * index;
  const body = JSON.stringify({
    model: "fake",
    max_tokens: maxTokens,
    messages: [{ role: "user", content: "x".repeat(7 * index) }],
    stream: true,
    stream_options: { include_usage: true },
  });
  const [prompt, answer] = [20 + 30 * index, 10 + (index % 7)];
  const reserve = Math.ceil(body.length / 4) + maxTokens;
  const api = APIS[index % APIS.length] as string;
  // Anthropic sends the tokens of the prompt, and one of the answer, at the start of a stream.
  const known = api.endsWith("messages") ? prompt + 1 : 0;
  const used = { complete: prompt + answer, error: 0 }[end as string];
  return {
    path: `/${rule}${api}`,
    body,
    end,
    script: {
      prompt,
      answer,
      ...(end === "provider breaks off" && { breakAfter: 5 }),
      ...(end === "error" && { status: 529 }),
    },
    reserve,
    charge: used ?? Math.max(reserve, known),
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

const servers = useServers();

describe.each(REMOTE_STORES)("the budget of a key over the store %s", (store) => {
  let worker: RunningWorker;
  let provider: LlmProvider;
  /** The calls of the running test, by the number that clients send in `x-call`. */
  let calls: readonly Call[] = [];
  /** Resolves when the streams may end. */
  let released = Promise.withResolvers<void>();

  beforeAll(async () => {
    provider = await startLlmProvider(({ headers }) => {
      const { script } = calls[Number(headers["x-call"])] as Call;
      return { ...script, holdLast: released.promise };
    });
    const prefix = `llm-${randomUUID()}`;
    const config: ConfigInput = { store, rules: RULES, prefix, timeoutMs: 10_000 };
    const vars = { ...servers.varsFor(store), ORIGIN_URL: provider.url };
    worker = await startWorker({ config, main: main(config), vars });
  });

  afterAll(async () => {
    await worker.stop();
    await provider.stop();
  });

  async function remaining(rule: string, key: string): Promise<number> {
    const answer = await send(worker.url, `/${rule}`, { headers: { "x-api-key": key } });
    return JSON.parse(String(answer.body));
  }

  /**
   * Starts a call, and waits for its first bytes. Calls that hang up are then reset.
   *
   * @returns the status, and a promise that resolves when the response has ended
   */
  async function start(call: Call, key: string) {
    const headers = {
      "x-api-key": key,
      "x-call": String(calls.indexOf(call)),
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(call.body)),
    };
    const sent = open(worker.url, call.path, { method: "POST", headers });
    sent.on("error", () => {});
    sent.end(call.body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.on("error", () => {});
    const closed = new Promise<void>((resolve) => response.once("close", resolve));
    const first = once(response, "data").catch(() => {});
    await Promise.race([first, closed]);
    response.resume();
    if (call.end === "client hangs up" && response.statusCode === 200) {
      response.socket.resetAndDestroy();
    }
    return { call, status: response.statusCode, closed };
  }

  it(`is charged for ${STREAMS} streams at once: tokens used, and the reserves of broken ones`, async () => {
    const key = randomUUID();
    released = Promise.withResolvers();
    calls = Array.from({ length: STREAMS }, (_, index) => callAt(index, "large"));
    const started = await Promise.all(calls.map((call) => start(call, key)));
    expect(started.map(({ status }) => status)).toEqual(
      calls.map(({ end }) => (end === "error" ? 529 : 200)),
    );
    released.resolve();
    await Promise.all(started.map(({ closed }) => closed));
    const expected = sum(calls.map(({ charge }) => charge));
    await vi.waitFor(
      async () => expect(BUDGET - (await remaining("large", key))).toBe(expected),
      PATIENCE,
    );
    // The sum differs from the sum of all reserves, and from the sum of all tokens.
    expect(expected).not.toBe(sum(calls.map(({ reserve }) => reserve)));
    const ends = new Set(calls.map(({ end }) => end));
    expect(ends.size).toBe(4);
  });

  it("is never exceeded by more than the settled differences", async () => {
    const key = randomUUID();
    released = Promise.withResolvers();
    calls = Array.from({ length: STREAMS }, (_, index) => callAt(index, "small"));
    const started = await Promise.all(calls.map((call) => start(call, key)));
    const admitted = started.filter(({ status }) => status !== 429).map(({ call }) => call);
    const open = admitted.filter(({ end }) => end === "complete");
    expect(started.length - admitted.length).toBeGreaterThan(10);
    // All streams are still in progress, so none of them has charged more than its reserve.
    expect(sum(open.map(({ reserve }) => reserve))).toBeLessThanOrEqual(SMALL_BUDGET);
    expect(await remaining("small", key)).toBeGreaterThanOrEqual(0);
    released.resolve();
    await Promise.all(started.map(({ closed }) => closed));
    const expected = sum(admitted.map(({ charge }) => charge));
    const left = Math.max(0, SMALL_BUDGET - expected);
    await vi.waitFor(async () => expect(await remaining("small", key)).toBe(left), PATIENCE);
    const differences = admitted.map(({ charge, reserve }) => Math.max(0, charge - reserve));
    expect(expected).toBeLessThanOrEqual(SMALL_BUDGET + sum(differences));
  });

  it("is charged for the known input if a broken stream has used more than its reserve", async () => {
    const key = randomUUID();
    released = Promise.withResolvers();
    const call = { ...callAt(1, "large"), end: "client hangs up" as const };
    calls = [{ ...call, script: { prompt: 5000, answer: 10 } }];
    const [started] = await Promise.all(calls.map((each) => start(each, key)));
    expect(started?.status).toBe(200);
    await started?.closed;
    await vi.waitFor(
      async () => expect(BUDGET - (await remaining("large", key))).toBe(5001),
      PATIENCE,
    );
    released.resolve();
  });
});
