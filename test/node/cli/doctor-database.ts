import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { examine } from "../../../cli/doctor/examine.ts";
import type { DoctorFinding } from "../../../cli/doctor/findings.ts";
import type { Wait } from "../../../cli/doctor/rest.ts";
import { listen } from "../../../dev/loopback.ts";
import { connectRedis } from "../../../dev/redis-connection.ts";
import { startRedisServer } from "../../../dev/redis-server.ts";
import { startUpstashRest } from "../../../dev/upstash-rest.ts";

/**
 * Answers a command instead of the database. Returns false if the database must answer.
 *
 * @param name the command in capitals; `PIPELINE` for several commands
 * @param call the number of the call, from 1
 */
export type Intercept = (
  name: string,
  response: ServerResponse,
  call: number,
) => boolean | Promise<boolean>;

/** The user as whom the REST server sends commands to Redis. */
export interface RedisUser {
  readonly username: string;
  readonly password: string;
}

/** A database for one test, with Upstash's REST API. */
export interface TestDatabase {
  readonly url: string;
  readonly token: string;
  /** Sends a command to Redis directly. @throws if Redis answers with an error */
  run(...command: [string, ...string[]]): Promise<unknown>;
  /** Returns all keys with their values and types, in order. */
  keys(): Promise<string[]>;
  /** Makes the REST server answer as the function wants. Without a function, it works normally. */
  intercept(answer?: Intercept): void;
  /** Waits for a deadline, which ends only by {@link pass}. */
  readonly wait: Wait;
  /** Lets the time of the deadlines pass. */
  pass(ms: number): void;
  /** Resolves when the database has run all calls that have arrived. */
  idle(): Promise<void>;
  /** Makes the REST server send all commands as this user. */
  becomeUser(user: RedisUser): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** @param settings more arguments of `redis-server` */
export async function startDatabase(...settings: string[]): Promise<TestDatabase> {
  const redis = await startRedisServer(settings);
  if (!redis) throw new Error("PATH has no redis-server.");
  const direct = await connectRedis(redis);
  let rest = await startUpstashRest({ redis });
  const { token } = rest;
  let [intercept, calls]: [Intercept, number] = [() => false, 0];

  const running = new Set<Promise<void>>();
  const deadlines = new Set<{ leftMs: number; readonly end: () => void }>();

  const proxy = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const call = handle(request, response).catch(() => void response.destroy());
    running.add(call);
    void call.then(() => running.delete(call));
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    calls += 1;
    const body = await buffer(request);
    const name = request.url === "/" ? JSON.parse(`${body}`)[0].toUpperCase() : "PIPELINE";
    if (await intercept(name, response, calls)) return;
    const answer = await fetch(`${rest.url}${request.url}`, {
      method: "POST",
      headers: { authorization: request.headers.authorization ?? "" },
      body,
    });
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(await answer.text());
  }
  const { host, port, stop } = await listen(proxy);

  return {
    url: `http://${host}:${port}`,
    token,
    async run(...command) {
      const [outcome] = await direct.run([command]);
      if (!outcome || "error" in outcome) throw new Error(outcome?.error);
      return outcome.reply;
    },
    async keys() {
      const [outcome] = await direct.run([["KEYS", "*"]]);
      const names = outcome && "reply" in outcome ? (outcome.reply as Buffer[]).map(String) : [];
      const types = await direct.run(names.map((name): [string, string] => ["TYPE", name]));
      return names.map((name, index) => `${name} ${JSON.stringify(types[index])}`).sort();
    },
    intercept(answer = () => false) {
      [intercept, calls] = [answer, 0];
    },
    wait: (ms, _, { signal }) =>
      new Promise((resolve, reject) => {
        const deadline = { leftMs: ms, end: () => resolve(undefined) };
        deadlines.add(deadline);
        signal.addEventListener("abort", () => {
          deadlines.delete(deadline);
          reject(signal.reason);
        });
      }),
    pass(ms) {
      for (const deadline of deadlines) {
        deadline.leftMs -= ms;
        if (deadline.leftMs <= 0) deadline.end();
      }
    },
    async idle() {
      await Promise.all(running);
    },
    async becomeUser(user) {
      await rest.stop();
      rest = await startUpstashRest({ redis: { ...redis, ...user }, token });
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await rest.stop();
      direct.close();
      await redis.stop();
    },
  };
}

const DEFAULTS = { prefix: "weir", clock: "store", timeoutMs: 5000 } as const;

export function findingsOf(
  { url, token, wait }: Pick<TestDatabase, "url" | "token"> & { readonly wait?: Wait },
  config: Partial<Parameters<typeof examine>[0]["config"]> = {},
  stop: AbortSignal = new AbortController().signal,
): Promise<DoctorFinding[]> {
  return examine({ url, token, config: { ...DEFAULTS, ...config }, stop, wait });
}

export function answerJson(response: ServerResponse, status: number, body: unknown): true {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
  return true;
}
