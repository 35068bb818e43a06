import { BodyCopy } from "./body-copy.ts";
import { decodableBody, isEmptyEncoded, isEncoded } from "./encoded-body.ts";
import { passThrough } from "./pass-through.ts";
import { gunzip, isBrotli } from "./raw-body.ts";

/** A response whose body is copied while a client receives it. */
export interface TeedResponse {
  /** The response for the client. The readers of copies do not delay its body. */
  readonly response: Response;
  /**
   * One response for each reader, with the same head. Its body ends when the client's body ends. If
   * the client's body breaks off, or the reader lags behind by more than `MAX_LAG_BYTES`, reading
   * it throws an error.
   */
  readonly copies: readonly Response[];
  /**
   * Resolves when the first bytes have been passed on to the client. Work for copies that begins
   * after this cannot delay these bytes.
   */
  readonly started: Promise<void>;
  /** Resolves to true when the body has ended, and to false when it has broken off. Never rejects. */
  readonly ended: Promise<boolean>;
  /** Whether a copy could not be decoded up to now. */
  hasFault(): boolean;
}

export interface TeeOptions {
  /** Whether the field Content-Length is surely the length of the body. */
  readonly isLengthExact: boolean;
  /** Whether the body is raw: see raw-body.ts. */
  readonly isRaw: boolean;
  /** How long a compressed response that is not raw may wait for its first bytes. */
  readonly maxWaitMs: number;
}

/**
 * Copies the body of a response while the client receives it. A chunk is read from the origin when
 * the client is ready for it. So a slow client slows down the origin, as without copies, and
 * nothing is buffered for the client.
 *
 * The client gets a raw body unchanged, and only the copies are decoded. Another compressed body is
 * decoded for the copies, and the runtime encodes it again for the client. If its first bytes cannot
 * be decoded, the client gets the response unchanged.
 *
 * @param count the number of copies
 * @returns undefined if a response of this kind cannot be copied: a WebSocket, or a status that
 * `new Response` refuses
 */
export async function teeResponse(
  response: Response,
  count: number,
  { isLengthExact, isRaw, maxWaitMs }: TeeOptions,
): Promise<TeedResponse | undefined> {
  const { status, statusText, headers } = response;
  if (status < 200 || status > 599) return undefined;
  const copyHead = { status, statusText, headers };
  const copies = Array.from({ length: count }, () => new BodyCopy());
  const unchanged = (bodies: readonly (ReadableStream<Uint8Array> | null)[], isRead: boolean) => ({
    response,
    copies: bodies.map((each) => new Response(each, copyHead)),
    started: Promise.resolve(),
    ended: Promise.resolve(isRead),
    hasFault: () => false,
  });
  if (!response.body || response.bodyUsed || isEmptyEncoded(response)) {
    return unchanged(Array(count).fill(null), true);
  }
  const body = await readableBody(response, isRaw, maxWaitMs);
  if (!body) {
    for (const copy of copies) copy.fail(new Error("The body cannot be decoded."));
    return unchanged(
      copies.map(({ stream }) => stream),
      false,
    );
  }
  const [start, end] = [Promise.withResolvers<void>(), Promise.withResolvers<boolean>()];
  const stream = passThrough(body, copies, { onStart: start.resolve, onEnd: end.resolve });
  const isLengthKept = isLengthExact && (isRaw || !headers.has("content-encoding"));
  const passed = isLengthKept ? withFixedLength(stream, headers) : stream;
  // An encoding that nothing decodes: the function cannot read the copy, even if it is complete.
  let hasFault =
    !isEncoded(headers) && !/^\s*(identity\s*)?$/i.test(headers.get("content-encoding") ?? "");
  const decoded = ({ stream: copy }: BodyCopy) => {
    if (!isRaw || !isEncoded(headers)) return copy;
    return gunzip(copy, () => {
      hasFault = true;
    });
  };
  return {
    // The second argument is the response itself, so that a body that an app has encoded is not
    // encoded again.
    response: new Response(passed, response),
    copies: copies.map((copy) => new Response(decoded(copy), copyHead)),
    started: start.promise,
    ended: end.promise,
    hasFault: () => hasFault,
  };
}

/**
 * Returns the body that the client gets and that is copied; undefined if its copies could not be
 * decoded.
 */
async function readableBody(
  response: Response,
  isRaw: boolean,
  maxWaitMs: number,
): Promise<ReadableStream<Uint8Array> | undefined> {
  const { headers, status } = response;
  const body = response.body as ReadableStream<Uint8Array>;
  if (!isEncoded(headers)) return body;
  if (!isRaw) return decodableBody(response, maxWaitMs);
  // A part of an encoded body begins anywhere in it.
  return status === 206 || isBrotli(headers) ? undefined : body;
}

/** Keeps the field Content-Length. */
function withFixedLength(
  stream: ReadableStream<Uint8Array>,
  headers: Headers,
): ReadableStream<Uint8Array> {
  const length = headers.get("content-length") ?? "";
  if (!/^\d{1,15}$/.test(length)) return stream;
  const { readable, writable } = new FixedLengthStream(Number(length));
  // If the client hangs up, `pipeTo` cancels the stream and rejects. The rejection needs no
  // handling.
  stream.pipeTo(writable).catch(() => {});
  return readable;
}
