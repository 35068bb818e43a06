import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { startRedis } from "../../../dev/redis.ts";
import { startUpstashRest } from "../../../dev/upstash-rest.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { send } from "../support/client.ts";
import { besideControl } from "../support/control.ts";
import { closedPort, type Handler, type Origin, startOrigin } from "../support/origin.ts";
import { awayFromWindowEdge } from "../support/window-edge.ts";
import {
  type RunningWorker,
  startWorker,
  startWorkers,
  type WorkerOptions,
} from "../support/worker.ts";

const TIMEOUT_MS = 600;
/**
 * How much longer than the deadline Weir may take, in milliseconds. This margin is shorter than the
 * deadline, so that a test fails if Weir waits twice as long as the deadline.
 */
const MARGIN_MS = TIMEOUT_MS / 2;
const TOKEN = "token-that-nobody-may-see";
const CLIENT = "203.0.113.77";

// The rules have no leases, because an isolate could use its leased quota during the whole outage.
const open = { limit: 100, window: "1h", lease: false } as const;
const closed = { ...open, onError: "closed" } as const;
const RULES: ConfigInput["rules"] = [
  { name: "open", match: { paths: ["/open", "/both"] }, ...open },
  { name: "closed", match: { paths: ["/closed", "/both"] }, ...closed },
  { name: "shadowed", match: { paths: ["/shadowed", "/open"] }, ...closed, mode: "shadow" },
];

let origin: Origin;
let store: Origin;
/** The Worker of the test that runs. */
let worker: RunningWorker;

beforeAll(async () => {
  origin = await startOrigin();
  store = await startOrigin();
});

afterAll(async () => {
  await origin.stop();
  await store.stop();
});

/** Returns the options of a Worker that uses the store at this URL. */
function optionsOf(url: string, token = TOKEN, config: Partial<ConfigInput> = {}): WorkerOptions {
  return {
    config: { rules: RULES, timeoutMs: TIMEOUT_MS, ...config },
    vars: {
      ORIGIN_URL: origin.url,
      UPSTASH_REDIS_REST_URL: url,
      UPSTASH_REDIS_REST_TOKEN: token,
    },
  };
}

/** Starts one Worker for each case in one workerd. Returns a function that makes a case's Worker the one of the test. */
function useWorkers(
  count: number,
  options: (at: number) => WorkerOptions | Promise<WorkerOptions>,
) {
  let workers: readonly RunningWorker[];

  beforeAll(async () => {
    const all = Array.from({ length: count }, (_, at) => options(at));
    workers = await startWorkers(await Promise.all(all));
  });

  afterAll(() => workers[0]?.stop());

  return async (at: number) => {
    worker = workers[at] as RunningWorker;
    // The first request of a Worker takes longer than later requests, and the deadline does not include this time. No
    // rule matches this request.
    await sendTo("/first");
  };
}

function sendTo(path: string) {
  return send(worker.url, path, { headers: { "CF-Connecting-IP": CLIENT } });
}

/**
 * Sends one request to each path, all at the same time. Expects that Weir cannot decide them, and
 * checks its responses.
 */
async function expectUndecided() {
  const sentAt = performance.now();
  const paths = ["/open", "/closed", "/both", "/shadowed"];
  const { result, controlMs } = await besideControl(worker.url, "/free", async () => {
    const answers = await Promise.all(paths.map(sendTo));
    return { answers, tookMs: performance.now() - sentAt };
  });
  const { answers, tookMs } = result;
  expect(tookMs).toBeLessThan(TIMEOUT_MS + MARGIN_MS + controlMs);

  expect(answers.map(({ status }) => status)).toEqual([200, 503, 503, 200]);
  for (const { status, headers, body } of answers) {
    // Undecided requests have no quotas to show.
    const names = Object.keys(headers).filter((name) => name.includes("ratelimit"));
    expect(names).toEqual([]);
    if (status === 200) continue;
    expect(headers).toMatchObject({
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      "retry-after": expect.stringMatching(/^[1-9]\d*$/),
    });
    expect(JSON.parse(body.toString())).toEqual({
      type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
      title: "Request cannot be satisfied due to temporary server capacity constraints",
      status: 503,
      detail: expect.any(String),
    });
  }
}

/**
 * Waits for the two kinds of log lines about an outage: for undecided requests, and for the rule in shadow mode, on
 * which no request depends. If a test takes longer than ten seconds, a kind has several lines.
 */
async function logLine(): Promise<string> {
  // If no decisions share a call, five calls fail in a row, and the breaker opens.
  const types = () =>
    worker
      .logs()
      .map((line) => /"weir":"([a-z-]+)"/.exec(line)?.[1])
      .filter((type) => type !== "breaker");
  const expected = ["shadow-undecided", "undecided"];
  await vi.waitFor(() => expect([...new Set(types())].sort()).toEqual(expected), PATIENCE);
  return worker.logs().join();
}

function reply(status: number, body: unknown, type = "application/json"): Handler {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return (_, response) => response.writeHead(status, { "Content-Type": type }).end(text);
}

/** Replies with Redis's error for an unknown command. This error quotes the arguments. */
const unknownCommand: Handler = async (_, response) => {
  const [name, ...args] = JSON.parse(`${await store.received.at(-1)?.body}`) as string[];
  const quoted = args.map((arg) => `'${arg}' `).join("");
  const error = `ERR unknown command '${name}', with args beginning with: ${quoted}`;
  response.writeHead(400).end(JSON.stringify({ error }));
};

const FAULTS: { does: string; cause: string; handler: Handler; calls?: number }[] = [
  { does: "never replies", cause: "timeout", handler: () => {} },
  {
    does: "never ends its reply",
    cause: "timeout",
    handler: (_, to) => to.write('{"result":['),
  },
  { does: "closes the connection", cause: "unreachable", handler: (_, to) => to.destroy() },
  {
    does: "replies with 500",
    cause: "error-reply",
    handler: reply(500, { error: "ERR internal" }),
  },
  { does: "replies with 500 and no body", cause: "invalid-reply", handler: reply(500, "") },
  {
    does: "replies with 503 in HTML",
    cause: "invalid-reply",
    handler: reply(503, "<h1>", "text/html"),
  },
  {
    does: "replies with 401",
    cause: "error-reply",
    handler: reply(401, { error: "WRONGPASS no" }),
  },
  { does: "quotes the command in an error", cause: "error-reply", handler: unknownCommand },
  {
    does: "keeps no script",
    cause: "error-reply",
    handler: reply(400, { error: "NOSCRIPT No matching script." }),
    calls: 2,
  },
  {
    does: "does not reply with JSON",
    cause: "invalid-reply",
    handler: reply(200, "PONG", "text/plain"),
  },
  { does: "replies with null", cause: "invalid-reply", handler: reply(200, null) },
  { does: "replies without a result", cause: "invalid-reply", handler: reply(200, {}) },
  {
    does: "replies with the result null",
    cause: "invalid-reply",
    handler: reply(200, { result: null }),
  },
  {
    does: "replies with too few numbers",
    cause: "invalid-reply",
    handler: reply(200, { result: [1, 1] }),
  },
  {
    does: "replies with a count below 0",
    cause: "invalid-reply",
    handler: reply(200, { result: [1, 1, -1, 1] }),
  },
];

describe("a store that fails", () => {
  const use = useWorkers(FAULTS.length, () => optionsOf(store.url));

  it.each(FAULTS.map((fault, at) => ({ ...fault, at })))(
    "leaves requests undecided, is called once, and is logged without secrets if it $does",
    async ({ cause, handler, calls = 1, at }) => {
      store.on("/", handler);
      await use(at);
      const before = store.received.length;
      await expectUndecided();
      const requests = store.received.slice(before);
      // The rules in other modes are decided on their own. Decisions with the same counter may share a call.
      expect(requests.length).toBeGreaterThan(0);
      expect(requests.length).toBeLessThanOrEqual((4 + 1) * calls);
      const line = await logLine();
      expect(line).toContain(`"cause":"${cause}"`);
      const bodies = await Promise.all(requests.map(({ body }) => body));
      const keys = bodies.flatMap((body) => keysOf(body.toString()));
      for (const secret of [TOKEN, CLIENT, ...keys]) expect(line).not.toContain(secret);
    },
  );
});

const UNREACHABLE: [string, () => WorkerOptions | Promise<WorkerOptions>, cause: string][] = [
  ["at a closed port", async () => optionsOf(`http://${await closedPort()}`), "unreachable"],
  ["without a token", () => optionsOf(store.url, ""), "misconfigured"],
  ["with an invalid token", () => optionsOf(store.url, `${TOKEN} twice`), "misconfigured"],
  ["without a URL", () => optionsOf("", TOKEN, { store: "upstash" }), "misconfigured"],
  ["with an invalid URL", () => optionsOf("example.upstash.io"), "misconfigured"],
];

describe("a store that cannot be called", () => {
  const use = useWorkers(UNREACHABLE.length, (at) =>
    (UNREACHABLE[at] as (typeof UNREACHABLE)[number])[1](),
  );

  it.each(UNREACHABLE.map(([how, , cause], at) => [how, cause, at] as const))(
    "leaves requests undecided and is not called if it is %s",
    async (_how, cause, at) => {
      const before = store.received.length;
      await use(at);
      await expectUndecided();
      expect(store.received).toHaveLength(before);
      const log = () => worker.logs().join("\n");
      await vi.waitFor(() => expect(log()).toContain(`"cause":"${cause}"`), PATIENCE);
      expect(log()).not.toContain(TOKEN);
    },
  );

  it("counts requests again after it has recovered", async () => {
    await awayFromWindowEdge(3_600_000);
    const first = await startRedisOverRest();
    worker = await startWorker(optionsOf(first.url, first.token, { timeoutMs: 10_000 }));
    onTestFinished(worker.stop);
    const remaining = async () => (await sendTo("/closed")).headers.ratelimit;
    expect(await remaining()).toContain("r=99");
    expect(await remaining()).toContain("r=98");

    await first.stopRedis();
    await expectUndecided();
    await first.stop();
    await expectUndecided();

    // The new Redis is empty. It has no counts and no script.
    await startRedisOverRest({ token: first.token, port: Number(new URL(first.url).port) });
    await vi.waitFor(async () => expect(await remaining()).toContain("r=99"), PATIENCE);
    expect(await remaining()).toContain("r=98");
  });
});

async function startRedisOverRest(options: { token?: string; port?: number } = {}) {
  const redis = await startRedis();
  onTestFinished(redis.stop);
  const rest = await startUpstashRest({ redis, ...options });
  const stop = once(rest.stop);
  onTestFinished(stop);
  return { url: rest.url, token: rest.token, stop, stopRedis: redis.stop };
}

/** Returns a function that runs an action on its first call only. */
function once(action: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => (done ??= action());
}

/** Returns the keys of a script call `["evalsha", digest, count, key…, argument…]`. */
function keysOf(call: string): string[] {
  const [, , count, ...rest] = JSON.parse(call) as [string, string, number, ...string[]];
  return rest.slice(0, count);
}
