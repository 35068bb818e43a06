import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type Listening, type ListenOptions, listen } from "./loopback.ts";
import { connectRedis, type Outcome, RedisUnreachable } from "./redis-connection.ts";
import { requestTarget } from "./request-target.ts";
import { acceptScriptFlag } from "./script-flag.ts";
import { BadRequest, parseCommand, parseCommands, parsePath, toEntry } from "./upstash-wire.ts";

const MAX_BODY_BYTES = 1024 * 1024;

export type UpstashRestOptions = ListenOptions & {
  /** The Redis that does the work. */
  redis: { host: string; port: number };
  /** The token that every request must carry. Default: a random one. */
  token?: string;
  /** Milliseconds that each answer is held back, to stand for a network. Default: 0. */
  delayMs?: number;
};

/** A local stand-in for Upstash's REST API. */
export type UpstashRest = {
  /** What `UPSTASH_REDIS_REST_URL` should be. */
  url: string;
  /** What `UPSTASH_REDIS_REST_TOKEN` should be. */
  token: string;
  /** The number of HTTP requests received so far, refused ones included. */
  calls(): number;
  /** Stops listening and drops open connections. Redis itself runs on. */
  stop(): Promise<void>;
};

/** What the handler of a request decides; the server writes it out as JSON. */
type Answer = { status: number; body: unknown };

/**
 * Starts an HTTP server that speaks Upstash's REST API over a Redis: a command to `POST /` or as
 * a path, lists of commands to `/pipeline` and `/multi-exec`, strings in base64 on request, and
 * scripts with Upstash's own flag. Redis being away is a 503 at once, and passes when it is back.
 *
 * @throws when Redis does not answer now, or the port is taken.
 */
export async function startUpstashRest(options: UpstashRestOptions): Promise<UpstashRest> {
  const { token = randomBytes(24).toString("base64url"), delayMs = 0 } = options;
  const redis = acceptScriptFlag(await connectRedis(options.redis));
  let calls = 0;

  // No timeout: closing an idle connection could meet a request that has just been sent on it.
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    calls += 1;
    const { status, body } = await answer(request).catch(toErrorAnswer);
    if (delayMs > 0) await delay(delayMs);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  });

  async function answer(request: IncomingMessage): Promise<Answer> {
    if (request.headers.authorization !== `Bearer ${token}`) {
      return failure(401, "WRONGPASS invalid or missing auth token");
    }
    if (!["GET", "POST", "PUT"].includes(request.method ?? "")) {
      return failure(405, "ERR only GET, POST and PUT are allowed");
    }
    const { path, query } = requestTarget(request);
    const body = await readBody(request);
    const base64 = request.headers["upstash-encoding"] === "base64";

    switch (path) {
      case "/pipeline": {
        const outcomes = await redis.run(parseCommands(parseJson(body)));
        return { status: 200, body: outcomes.map((outcome) => toEntry(outcome, base64)) };
      }
      case "/multi-exec": {
        const outcomes = await redis.transaction(parseCommands(parseJson(body)));
        // Redis refused the transaction as a whole: nothing ran, so there are no entries.
        if (!Array.isArray(outcomes)) return failure(400, outcomes.error);
        return { status: 200, body: outcomes.map((outcome) => toEntry(outcome, base64)) };
      }
      default: {
        const command = path === "/" ? parseCommand(parseJson(body)) : parsePath(path, body, query);
        const [outcome] = (await redis.run([command])) as [Outcome];
        return { status: "error" in outcome ? 400 : 200, body: toEntry(outcome, base64) };
      }
    }
  }

  let listening: Listening;
  try {
    listening = await listen(server, options);
  } catch (error) {
    redis.close();
    throw error;
  }

  return {
    url: `http://${listening.host}:${listening.port}`,
    token,
    calls: () => calls,
    async stop() {
      redis.close();
      await listening.stop();
    },
  };
}

class BodyTooLarge extends Error {}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Read to the end even when it is too much: a client that is still sending hears no answer.
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  if (bytes > MAX_BODY_BYTES) throw new BodyTooLarge();
  return Buffer.concat(chunks);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new BadRequest("ERR the body is not JSON");
  }
}

function failure(status: number, error: string): Answer {
  return { status, body: { error } };
}

function toErrorAnswer(error: unknown): Answer {
  if (error instanceof BadRequest) return failure(400, error.message);
  if (error instanceof BodyTooLarge) return failure(413, "ERR the body is larger than 1 MiB");
  if (error instanceof RedisUnreachable) return failure(503, `ERR ${error.message}`);
  return failure(500, `ERR ${error instanceof Error ? error.message : error}`);
}
