import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { listen } from "../../dev/loopback.ts";
import type { Vector } from "./vector.ts";
import { JWKS } from "./vectors/tokens.ts";

/** Large enough for any head, because workerd and Weir must refuse the ones that are too long. */
const MAX_HEAD_BYTES = 1024 * 1024;

/** One server that is the origin, which records its requests, and the issuer of tokens. */
export async function startTarget() {
  const received: string[] = [];
  const server = createServer({ maxHeaderSize: MAX_HEAD_BYTES }, ({ method, url }, response) => {
    if (url === "/jwks.json") return response.end(JSON.stringify(JWKS));
    received.push(`${method} ${url}`);
    return response.end("ok");
  });
  // 0 removes Node's limit: by default it ignores all but the first 2,000 fields.
  server.maxHeadersCount = 0;
  return { received, ...(await listen(server)) };
}

export interface RawAnswer {
  readonly status: number;
  /** By lower-case name. Repeated fields are joined by a comma. */
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
  // After a refusal in the middle of a request, the connection may be reset behind the answer.
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
