import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startLlmProvider } from "../../../dev/llm-provider.ts";
import { PATIENCE } from "../../patience.ts";
import { type Answer, type Outgoing, send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { limitsOf, policiesOf } from "../support/quota-fields.ts";
import { awayFromWindowEdge } from "../support/window-edge.ts";
import { runExample } from "./run-example.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let origin: Origin;

beforeAll(async () => {
  origin = await startOrigin();
});

afterAll(async () => {
  await origin.stop();
});

const inFrontOfOrigin = (folder: string) => runExample([folder], { ORIGIN_URL: origin.url });

/**
 * Sends requests one after another. Each request has a different address, unless `outgoing` sets an
 * address.
 */
async function sendInTurn(
  url: URL,
  path: string,
  count: number,
  outgoing: (index: number) => Outgoing = () => ({}),
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let index = 0; index < count; index++) {
    const { headers, ...rest } = outgoing(index);
    const client = { "CF-Connecting-IP": `203.0.113.${index}` };
    answers.push(await send(url, path, { ...rest, headers: { ...client, ...headers } }));
  }
  return answers;
}

const statusesOf = (answers: Answer[]) => answers.map(({ status }) => status);

describe("examples/own-worker", () => {
  it("counts each listed operation of a client separately, and all others together", async () => {
    await using worker = await inFrontOfOrigin("own-worker");
    await awayFromWindowEdge(MINUTE);
    const rests = [];
    for (const operationName of ["Search", "Search", "Checkout", "Made", "Up"]) {
      const [answer] = await sendInTurn(worker.url, "/graphql", 1, () => ({
        method: "POST",
        body: JSON.stringify({ operationName }),
      }));
      rests.push(answer && limitsOf(answer.headers)[0]?.r);
    }
    expect(rests).toEqual([19, 18, 19, 19, 18]);
    // The example reads a clone of the request, so the origin gets the complete body.
    expect(String(await origin.received.at(-1)?.body)).toBe('{"operationName":"Up"}');
  });
});

describe("examples/hono-app", () => {
  it("applies to each route only the rule that the app names", async () => {
    await using app = await runExample(["hono-app"]);
    await awayFromWindowEdge(HOUR);
    const post = () => ({ method: "POST", headers: { "CF-Connecting-IP": "203.0.113.1" } });
    const signUps = await sendInTurn(app.url, "/sign-up", 4, post);
    expect(statusesOf(signUps)).toEqual([201, 201, 201, 429]);
    expect(signUps[3]?.headers["content-type"]).toBe("application/problem+json");
    const [items] = await sendInTurn(app.url, "/api/items", 1);
    expect(items && policiesOf(items.headers)).toEqual([{ name: "api", q: 100, w: 60 }]);
    expect(String(items?.body)).toBe('["a weir","a mill"]');
    const [quotas] = await sendInTurn(app.url, "/api/quotas", 1);
    expect(JSON.parse(String(quotas?.body))).toMatchObject([{ policy: "api", remaining: 98 }]);
  });
});

describe("examples/service-caller", () => {
  it("calls another Worker, and can reserve quota before it is denied", async () => {
    await using caller = await runExample(["service-caller/caller", "service-caller/limits"]);
    await awayFromWindowEdge(HOUR);
    const reports = await sendInTurn(caller.url, "/?account=acme", 16);
    expect(statusesOf(reports)).toEqual([...Array(10).fill(200), ...Array(5).fill(202), 429]);
    expect(Number(reports[15]?.headers["retry-after"])).toBeGreaterThan(0);
    expect(statusesOf(await sendInTurn(caller.url, "/?account=other", 1))).toEqual([200]);
  });
});

describe("examples/signup-limit", () => {
  it("admits 100 requests an hour for all clients together", async () => {
    await using worker = await inFrontOfOrigin("signup-limit");
    await awayFromWindowEdge(HOUR);
    const answers = await sendInTurn(worker.url, "/sign-up", 101, () => ({ method: "POST" }));
    expect(statusesOf(answers)).toEqual([...Array(100).fill(200), 429]);
  });
});

describe("examples/daily-quota", () => {
  it("begins a new window at midnight UTC", async () => {
    await using worker = await inFrontOfOrigin("daily-quota");
    await awayFromWindowEdge(DAY);
    const before = Date.now();
    const [answer] = await sendInTurn(worker.url, "/api/x", 1);
    expect(answer && policiesOf(answer.headers)).toEqual([
      { name: "daily", q: 1000, w: 86_400 },
      { name: "daily-address", q: 10_000, w: 86_400 },
    ]);
    const untilMidnight = (now: number) => Math.ceil((DAY - (now % DAY)) / 1000);
    const reset = Number(answer && limitsOf(answer.headers)[0]?.t);
    expect(reset).toBeLessThanOrEqual(untilMidnight(before));
    expect(reset).toBeGreaterThanOrEqual(untilMidnight(Date.now()));
  });
});

describe("examples/llm-shards", () => {
  it.each([
    ["with errors that keep their fields", undefined],
    ["with errors that lose their fields, at an old compatibility date", "2025-06-01"],
  ])("charges ten shards and throws over the binding, %s", async (_, date) => {
    await using worker = await runExample(["llm-shards"], {}, date);
    await awayFromWindowEdge(MINUTE);
    const prompt = (tokens: number) => () => ({ method: "POST", body: "x".repeat(4 * tokens) });
    // Each request costs 80,000 tokens, so a shard admits only one request a minute, and ten shards
    // admit ten. The test may span two minutes, and then twice as many may be admitted.
    const answers = await sendInTurn(worker.url, "/", 30, prompt(78_000));
    expect(String(answers[0]?.body)).toMatch(/^You said: x+$/);
    const admitted = statusesOf(answers).filter((status) => status === 200).length;
    expect(admitted).toBeGreaterThanOrEqual(5);
    expect(admitted).toBeLessThanOrEqual(20);
    const denied = answers.find(({ status }) => status === 429);
    expect(Number(denied?.headers["retry-after"])).toBeGreaterThan(0);
    expect(Number(denied?.headers["retry-after"])).toBeLessThanOrEqual(60);
  });
});

describe("examples/llm-proxy", () => {
  const URL_PATH = "/v1/chat/completions";

  it("charges the tokens of streams, and forwards only calls of known keys", async () => {
    await using provider = await startLlmProvider(({ body }) => ({
      prompt: 100,
      answer: 20,
      ...(body.fails === true && { status: 400 }),
    }));
    const vars = { PROVIDER_URL: provider.url, PROVIDER_KEY: "provider", CLIENT_KEYS: "one two" };
    await using worker = await runExample(["llm-proxy"], vars);
    await awayFromWindowEdge(HOUR);
    const call = (key: string, body: object) => {
      const headers = { "x-api-key": key, "CF-Connecting-IP": "203.0.113.1" };
      return send(worker.url, URL_PATH, { method: "POST", headers, body: JSON.stringify(body) });
    };
    /** The quota after the estimate of this call, which is 1,000 tokens and those of the body. */
    const rest = ({ headers }: Answer) => limitsOf(headers)[0]?.r ?? 0;
    const reserve = 1000 + Math.ceil('{"stream":true}'.length / 4);

    const first = await call("one", { stream: true });
    expect(String(first.body)).toContain("[DONE]");
    expect(rest(first)).toBe(100_000 - reserve);
    expect(provider.calls[0]?.body).toEqual({
      stream: true,
      max_tokens: 1000,
      stream_options: { include_usage: true },
    });
    expect(provider.calls[0]?.headers.authorization).toBe("Bearer provider");
    expect(provider.calls[0]?.headers).not.toHaveProperty("x-api-key");
    // A call that fails costs nothing, so these calls do not change the quota.
    await vi.waitFor(async () => {
      const failed = await call("one", { stream: true, fails: true });
      expect(failed.status).toBe(400);
      const failedReserve = 1000 + Math.ceil('{"stream":true,"fails":true}'.length / 4);
      expect(rest(failed)).toBe(100_000 - 120 - failedReserve);
    }, PATIENCE);

    expect((await call("three", {})).status).toBe(401);
    expect((await call("", {})).status).toBe(401);
    const huge = await call("two", { max_tokens: 49_000 });
    expect(JSON.parse(String(huge.body)).usage.total_tokens).toBe(120);
    expect(provider.calls.every(({ headers }) => headers.authorization === "Bearer provider")).toBe(
      true,
    );
  });

  it("sends no call to the provider whose answers may be longer than the estimate", async () => {
    await using provider = await startLlmProvider(() => ({ prompt: 1, answer: 1 }));
    const vars = { PROVIDER_URL: provider.url, PROVIDER_KEY: "provider", CLIENT_KEYS: "one" };
    await using worker = await runExample(["llm-proxy"], vars);
    const post = (body: string, headers: Record<string, string> = {}) =>
      send(worker.url, URL_PATH, {
        method: "POST",
        headers: { "x-api-key": "one", "CF-Connecting-IP": "203.0.113.1", ...headers },
        body,
      });
    const refused = [
      '{"n":128}',
      '{"max_tokens":500,"n":100}',
      '{"best_of":100}',
      '{"max_tokens":-1}',
      '{"max_tokens":"100000"}',
      '{"max_tokens":100000.5}',
      '{"max_tokens":0}',
      '{"max_tokens":60000}',
      '{"max_tokens":1,"n":"128"}',
      '{"max_tokens":1,"MAX_TOKENS":100000}',
      '{"stream":"true"}',
      '{"stream":1}',
      "[]",
      "{",
    ];
    for (const body of refused) expect([body, (await post(body)).status]).toEqual([body, 400]);
    const encoded = await post('{"max_tokens":1}', { "content-encoding": "gzip" });
    expect(encoded.status).toBe(400);
    expect(provider.calls).toEqual([]);

    const sent: [body: string, fields: object][] = [
      ['{"n":3}', { n: 3, max_tokens: 1000 }],
      ['{"max_tokens":null}', { max_tokens: 1000 }],
      ['{"max_output_tokens":7}', { max_output_tokens: 7, max_tokens: 7 }],
      ['{"max_completion_tokens":7,"stream":false}', { max_completion_tokens: 7, stream: false }],
    ];
    for (const [body, fields] of sent) {
      expect((await post(body)).status).toBe(200);
      expect(provider.calls.at(-1)?.body).toEqual(fields);
    }
  });
});

describe("examples/hourly-rollover", () => {
  it("admits at once the quota of three hours for a new client, and no more", async () => {
    await using worker = await inFrontOfOrigin("hourly-rollover");
    await awayFromWindowEdge(HOUR);
    const post = () => ({ method: "POST", headers: { "CF-Connecting-IP": "203.0.113.1" } });
    const answers = await sendInTurn(worker.url, "/exports", 31, post);
    expect(statusesOf(answers)).toEqual([...Array(30).fill(200), 429]);
  });
});
