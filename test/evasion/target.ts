import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { listen } from "../../dev/loopback.ts";
import type { Vector } from "./vector.ts";
import { JWKS } from "./vectors/tokens.ts";

/** Heads of any size arrive: what is too long is for workerd and for Weir to say. */
const MAX_HEAD_BYTES = 1024 * 1024;

/** An origin that remembers what came, and the issuer of tokens, in one. */
export async function startTarget() {
  const received: string[] = [];
  const server = createServer({ maxHeaderSize: MAX_HEAD_BYTES }, ({ method, url }, response) => {
    if (url === "/jwks.json") return response.end(JSON.stringify(JWKS));
    received.push(`${method} ${url}`);
    return response.end("ok");
  });
  // Node would pass over fields behind the 2,000th byte of them all, so to speak: it counts to 2,000.
  server.maxHeadersCount = 0;
  return { received, ...(await listen(server)) };
}

export interface RawAnswer {
  readonly status: number;
  /** By lower-case name; repeated ones joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** All that came, one character for each byte. */
  readonly text: string;
}

/** Sends a vector's bytes as they are, and reads until the other side hangs up. */
export async function sendRaw(
  base: URL,
  { lines, body = "" }: Pick<Vector, "lines" | "body">,
): Promise<RawAnswer> {
  const socket = connect(Number(base.port), base.hostname);
  // Who is refused in the middle of a request may find the connection reset; the answer came before.
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
