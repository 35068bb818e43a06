import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { gunzipSync } from "node:zlib";

/** An answer as a browser receives it. */
export interface Transfer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** The bytes of the body as sent, and the text after decoding. */
  readonly bytes: number;
  readonly text: string;
}

/** Sends a GET that accepts gzip. */
export async function transfer(url: string): Promise<Transfer> {
  const call = request(url, { headers: { "accept-encoding": "gzip" } }).end();
  const [response] = (await once(call, "response")) as [IncomingMessage];
  const body = Buffer.concat(await response.toArray());
  const isCompressed = response.headers["content-encoding"] === "gzip";
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    bytes: body.byteLength,
    text: (isCompressed ? gunzipSync(body) : body).toString(),
  };
}

/** Returns the addresses of the script, the style sheet and the icon of a page. */
export function assetsOf(page: string): string[] {
  return [...page.matchAll(/(?:src|href)="(\/_weir\/(?:assets|login)\/[^"]+)"/g)].map(
    ([, path = ""]) => path,
  );
}
