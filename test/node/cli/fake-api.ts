import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { listen } from "../../../dev/loopback.ts";
import { callWeir, type Run, temporaryFolder } from "./run-weir.ts";

export const TOKEN = "admin-token-of-more-than-32-characters";

/** A request that a command has sent. */
export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

/** An answer that never comes: the connection breaks. */
export const BREAK: object = {};

/** An answer: a body that becomes JSON, or a status with header fields and a text. */
export type Fake =
  | object
  | { readonly status: number; readonly headers?: Record<string, string>; readonly text: string };

/** A server that answers each path below `/_weir/api/` with a fixed answer. */
export interface FakeApi extends AsyncDisposable {
  readonly url: string;
  readonly sent: Sent[];
  /** Runs a command against this server, in a folder without a configuration. */
  run(...args: string[]): Promise<Run>;
}

/** @param answers by method and path, such as `GET rules`; without query */
export async function startFakeApi(answers: Readonly<Record<string, Fake>>): Promise<FakeApi> {
  const sent: Sent[] = [];
  const server = createServer(async (request, response): Promise<void> => {
    const { method = "", url = "", headers } = request;
    const body = await text(request);
    const path = url.replace("/_weir/api/", "");
    sent.push({
      method,
      path,
      authorization: headers.authorization,
      body: body === "" ? undefined : JSON.parse(body),
    });
    const answer = answers[`${method} ${path.split("?")[0]}`] ?? answers.any ?? NOT_FOUND;
    if (answer === BREAK) return void request.socket.destroy();
    const raw = "text" in answer && "status" in answer ? (answer as Raw) : undefined;
    response.writeHead(raw?.status ?? 200, {
      "content-type": "application/json",
      ...raw?.headers,
    });
    response.end(raw?.text ?? JSON.stringify(answer));
  });
  const { host, port, stop } = await listen(server);
  const url = `http://${host}:${port}`;
  return {
    url,
    sent,
    async run(...args) {
      await using folder = await temporaryFolder();
      const env = { WEIR_ADMIN_TOKEN: TOKEN, WEIR_ADMIN_READ_TOKEN: undefined };
      return await callWeir([...args, "--at", url], folder.path, env);
    },
    [Symbol.asyncDispose]: stop,
  };
}

interface Raw {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly text: string;
}

const NOT_FOUND = { status: 404, text: "not found" };

/** Returns an error of the API. */
export function problem(
  status: number,
  detail: string,
  faults?: object[],
  others: object = {},
): Fake {
  return {
    status,
    headers: { "content-type": "application/problem+json" },
    text: JSON.stringify({ type: "about:blank", status, detail, faults, ...others }),
  };
}
