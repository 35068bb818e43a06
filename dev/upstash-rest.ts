import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { type Listening, type ListenOptions, listen } from "./loopback.ts";
import { connectRedis, type Outcome, RedisUnreachable } from "./redis-connection.ts";
import { requestTarget } from "./request-target.ts";
import { withScriptFlag } from "./script-flag.ts";
import { BadRequest, parseCommand, parseCommands, parsePath, toEntry } from "./upstash-wire.ts";

const MAX_BODY_BYTES = 1024 * 1024;

export interface UpstashRestOptions extends ListenOptions {
  /** The Redis that runs the commands. */
  readonly redis: { host: string; port: number };
  /** The token that every request must have. @default a random token */
  readonly token?: string;
  /** The delay of each answer, as in a network, in milliseconds. @default 0 */
  readonly delayMs?: number;
}

/** A local server with Upstash's REST API. */
export interface UpstashRest {
  /** The value for `UPSTASH_REDIS_REST_URL`. */
  readonly url: string;
  /** The value for `UPSTASH_REDIS_REST_TOKEN`. */
  readonly token: string;
  /** The number of HTTP requests received so far, including those answered with an error. */
  calls(): number;
  /** Stops listening and closes open connections. Redis keeps running. */
  stop(): Promise<void>;
}

/** The answer to a request. The server writes `body` as JSON. */
interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Starts an HTTP server with Upstash's REST API for a Redis. It accepts one command as the body of
 * `POST /` or as a path, and lists of commands at `/pipeline` and `/multi-exec`. It returns strings
 * in base64 on request, and accepts scripts with Upstash's flag. While Redis cannot be reached, it
 * answers 503 at once.
 *
 * @throws if Redis does not answer, or the port is in use
 */
export async function startUpstashRest(options: UpstashRestOptions): Promise<UpstashRest> {
  const { token = randomBytes(24).toString("base64url"), delayMs = 0 } = options;
  const redis = withScriptFlag(await connectRedis(options.redis));
  let calls = 0;

  // A server with a timeout could close an idle connection while a request arrives on it.
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
        // Redis rejected the whole transaction and ran no command, so there are no entries.
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
  // Even a body that is too large is read to its end, because a client reads no answer while it
  // sends.
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
