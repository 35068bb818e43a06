import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { type Listening, listen } from "./loopback.ts";
import { type Command, connectRedis, type Outcome, RedisUnreachable } from "./redis-connection.ts";
import { withScriptFlag } from "./script-flag.ts";
import { parseCommand, toEntry } from "./upstash-wire.ts";

/** A fault of a REST server. If the object is empty, the server works normally. */
export interface RestFault {
  /** Answers a request instead of the server. Calling `pass` lets the server answer. */
  readonly answer?: (
    request: IncomingMessage,
    response: ServerResponse,
    pass: () => unknown,
  ) => unknown;
  /** Replaces a command before Redis gets it. `sourceOf` returns the text of an earlier script by its digest. */
  readonly command?: (
    command: Command,
    sourceOf: (digest: string) => string | undefined,
  ) => Command;
  /** Whether the server stops listening and closes open connections. */
  readonly isClosed?: boolean;
}

/** An Upstash-compatible REST server whose faults a test can choose. */
export interface FaultyRest {
  readonly url: string;
  readonly token: string;
  /** The number of HTTP requests received so far. */
  calls(): number;
  /** Makes the server fail from now on. If no fault is passed, the server works again. */
  inject(fault?: RestFault): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a REST server that uses a Redis. It understands only the requests that Weir sends, which
 * are commands to `POST /`. Its faults can change while it runs. upstash-rest.ts is the server
 * without faults.
 *
 * @throws if Redis does not answer
 */
export async function startFaultyRest(redis: { host: string; port: number }): Promise<FaultyRest> {
  const token = "token-that-nobody-may-see";
  const connection = withScriptFlag(await connectRedis(redis));
  const sources = new Map<string, string>();
  let [fault, calls]: [RestFault, number] = [{}, 0];

  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    calls += 1;
    const pass = () => answer(request, response).catch(() => response.destroy());
    if (fault.answer) fault.answer(request, response, pass);
    else pass();
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const command = parseCommand(JSON.parse(`${await buffer(request)}`));
    const [name, script = ""] = command;
    if (name.toLowerCase() === "eval") sources.set(sha1(script), `${script}`);
    const changed = fault.command?.(command, (digest) => sources.get(digest));
    const { status, body } = await run(changed ?? command);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  }

  async function run(command: Command): Promise<{ status: number; body: unknown }> {
    try {
      const [outcome] = (await connection.run([command])) as [Outcome];
      return { status: "error" in outcome ? 400 : 200, body: toEntry(outcome, false) };
    } catch (error) {
      if (!(error instanceof RedisUnreachable)) throw error;
      return { status: 503, body: { error: `ERR ${error.message}` } };
    }
  }

  let listening: Listening | undefined = await listen(server);
  const { host, port } = listening;

  return {
    url: `http://${host}:${port}`,
    token,
    calls: () => calls,
    async inject(next = {}) {
      fault = next;
      if (next.isClosed && listening) {
        await listening.stop();
        listening = undefined;
      } else if (!next.isClosed && !listening) {
        listening = await listen(server, { host, port });
      }
    },
    async stop() {
      connection.close();
      await listening?.stop();
    },
  };
}

function sha1(text: string | Buffer): string {
  return createHash("sha1").update(text).digest("hex");
}
