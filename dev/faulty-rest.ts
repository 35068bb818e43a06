import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { type Listening, listen } from "./loopback.ts";
import { type Command, connectRedis, type Outcome, RedisUnreachable } from "./redis-connection.ts";
import { acceptScriptFlag } from "./script-flag.ts";
import { parseCommand, toEntry } from "./upstash-wire.ts";

/** What is wrong with a REST server, all of it or nothing. */
export type RestFault = {
  /** Answers in place of the server; `pass` has it answer as ever. */
  answer?: (request: IncomingMessage, response: ServerResponse, pass: () => unknown) => unknown;
  /** What reaches Redis in place of a command. `sourceOf` knows the scripts that came by. */
  command?: (command: Command, sourceOf: (digest: string) => string | undefined) => Command;
  /** Nothing listens, and open connections are cut. */
  isClosed?: boolean;
};

/** An Upstash-compatible REST server that can be made to fail. */
export type FaultyRest = {
  url: string;
  token: string;
  /** The number of HTTP requests received so far. */
  calls(): number;
  /** Has it fail from now on; without a fault, work again. */
  inject(fault?: RestFault): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Starts a REST server over a Redis that knows only what Weir sends, commands to `POST /`, and whose
 * faults are switched while it runs. For development without faults there is upstash-rest.ts.
 *
 * @throws when Redis does not answer now.
 */
export async function startFaultyRest(redis: { host: string; port: number }): Promise<FaultyRest> {
  const token = "token-that-nobody-may-see";
  const connection = acceptScriptFlag(await connectRedis(redis));
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
