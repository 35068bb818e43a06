import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { listen } from "../../dev/loopback.ts";
import type { Vector } from "./vector.ts";
import { JWKS } from "./vectors/tokens.ts";

/**
 * The maximum size of a request's head. It is large enough for every vector, because only workerd
 * and Weir may refuse long heads.
 */
const MAX_HEAD_BYTES = 1024 * 1024;

/**
 * Starts one server that is the origin and the issuer of tokens. It records the requests to the
 * origin.
 */
export async function startTarget() {
  const received: string[] = [];
  const server = createServer({ maxHeaderSize: MAX_HEAD_BYTES }, ({ method, url }, response) => {
    if (url === "/jwks.json") return response.end(JSON.stringify(JWKS));
    received.push(`${method} ${url}`);
    return response.end("ok");
  });
  // By default, Node ignores all header fields after the first 2,000. 0 removes this limit.
  server.maxHeadersCount = 0;
  return { received, ...(await listen(server)) };
}

export interface RawAnswer {
  readonly status: number;
  /** The header fields, by lower-case name. Repeated fields are joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole response, one character for each byte. */
  readonly text: string;
}

/** Sends the bytes of a vector, and reads until the server closes the connection. */
export async function sendRaw(
  base: URL,
  { lines, body = "" }: Pick<Vector, "lines" | "body">,
): Promise<RawAnswer> {
  const socket = connect(Number(base.port), base.hostname);
  // A server that refuses a request before the request's end may reset the connection after its
  // answer.
  socket.on("error", () => {});
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  socket.write(Buffer.from([...lines, "", body].join("\r\n"), "latin1"));
  await once(socket, "close");
  return { text, ...read(text) };
}

function read(text: string): Omit<RawAnswer, "text"> {
  const [statusLine = "", ...fields] = (text.split("\r\n\r\n", 1)[0] ?? "").split("\r\n");
  const headers: Record<string, string> = {};
  for (const field of fields) {
    const [name = "", value = ""] = field.split(/:\s*(.*)/s);
    const key = name.toLowerCase();
    headers[key] = key in headers ? `${headers[key]}, ${value}` : value;
  }
  return { status: Number(statusLine.split(" ")[1]), headers };
}
