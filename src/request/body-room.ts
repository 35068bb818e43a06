import { clientAddress } from "./headers.ts";

/** The bytes of request bodies that the functions in `custom` may have read in an isolate at the same time. */
export const MAX_BODY_BYTES = 32 * 1024 * 1024;
/**
 * The bodies of one address may take this part of the room that other clients leave. So no client can take the room of
 * the others, and with many clients, small bodies still find some.
 */
export const CLIENT_PARTS = 8;
/** IPv6 clients share the room by this prefix. */
const IPV6_PREFIX = 64;
/** The maximum length of a read, in bytes. */
const MAX_READ_BYTES = 16 * 1024;
/** The bytes that each read after the first `FREE_READS` counts beside its length, to bound the number of tiny reads. */
const READ_OVERHEAD_BYTES = 64;
const FREE_READS = 1024;

/** The room that one clone has taken. */
interface Share {
  readonly client: string;
  bytes: number;
  /** In milliseconds since the Unix epoch. After this time, nobody gives the room back, as after a killed invocation. */
  readonly endsAt: number;
}

/** The memory for the request bodies that functions read. All requests of an isolate share it. */
export class BodyRoom {
  readonly #shares = new Set<Share>();
  /** The bytes that each client has taken, if any. */
  readonly #taken = new Map<string, number>();
  #free = MAX_BODY_BYTES;

  /** @param endsAt when the share ends if nobody gives it back, in milliseconds since the Unix epoch */
  open(client: string, endsAt: number): Share {
    return { client, bytes: 0, endsAt };
  }

  /** @returns false if there is no room for these bytes */
  take(share: Share, bytes: number): boolean {
    const taken = () => this.#taken.get(share.client) ?? 0;
    const fits = () => (taken() + bytes) * CLIENT_PARTS <= this.#free + taken();
    if (!fits()) this.#dropEnded(Date.now());
    if (!fits()) return false;
    share.bytes += bytes;
    this.#free -= bytes;
    this.#taken.set(share.client, taken() + bytes);
    this.#shares.add(share);
    return true;
  }

  close(share: Share): void {
    const { client, bytes } = share;
    if (!this.#shares.delete(share)) return;
    share.bytes = 0;
    this.#free += bytes;
    const left = (this.#taken.get(client) ?? 0) - bytes;
    if (left > 0) this.#taken.set(client, left);
    else this.#taken.delete(client);
  }

  #dropEnded(now: number): void {
    for (const share of this.#shares) if (share.endsAt <= now) this.close(share);
  }
}

/** The room of this isolate. */
const isolateRoom = new BodyRoom();

/**
 * Bounds the memory for the body of one request while functions read clones of it. The runtime keeps all that a clone
 * has read until the request is forwarded, and a body that stalls would keep it as long as its client likes.
 */
export class BoundedClones {
  readonly #request: Request;
  readonly #room: BodyRoom;
  readonly #endsAt: number;
  /** The shares of all clones. */
  readonly #shares: Share[] = [];
  /** End the clones that are still being read. */
  readonly #ends = new Set<() => void>();
  #isEnded = false;

  /** @param endsAt when the room is free again at the latest, in milliseconds since the Unix epoch */
  constructor(request: Request, endsAt: number, room = isolateRoom) {
    this.#request = request;
    this.#room = room;
    this.#endsAt = endsAt;
    if (!request.body) return;
    // Functions get the request that is forwarded, and clone it themselves.
    Object.defineProperty(request, "clone", { configurable: true, value: () => this.#clone() });
  }

  /** Ends the clones: reading them throws an error, unless they have been read to their end. */
  endReads(): void {
    this.#isEnded = true;
    for (const end of this.#ends) end();
    this.#ends.clear();
  }

  /** Lets later code clone the request without a bound. */
  restore(): void {
    Reflect.deleteProperty(this.#request, "clone");
  }

  /** Ends the clones, and gives the room back. */
  close(): void {
    this.endReads();
    for (const share of this.#shares) this.#room.close(share);
  }

  #clone(): Request {
    const copy: Request = Request.prototype.clone.call(this.#request);
    return copy.body ? new Request(copy, { body: this.#bounded(copy.body) }) : copy;
  }

  /**
   * Returns the body as a stream that fails when there is no room, or when the reads end. The room for a stated length
   * is taken at the first read, so that of many bodies of a client that arrive together, some find room for all of their
   * bytes.
   */
  #bounded(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const read = readerOf(body);
    const client = clientAddress(this.#request.headers, IPV6_PREFIX);
    const share = this.#room.open(client, this.#endsAt);
    this.#shares.push(share);
    let needed = Number(this.#request.headers.get("content-length") ?? 0) || 0;
    let total = 0;
    let reads = 0;
    const hasRoom = () => needed <= share.bytes || this.#room.take(share, needed - share.bytes);
    const fail = (controller: ReadableStreamDefaultController, text: string) => {
      controller.error(new Error(text));
      read.cancel();
    };
    let end = () => {};
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          end = () => fail(controller, "The body has not arrived in time.");
          this.#ends.add(end);
        },
        pull: async (controller) => {
          if (this.#isEnded) return end();
          const chunk = hasRoom() ? await read.next() : undefined;
          if (this.#isEnded) return;
          total += (chunk?.byteLength ?? 0) + (++reads > FREE_READS ? READ_OVERHEAD_BYTES : 0);
          needed = Math.max(needed, total);
          if (chunk && hasRoom()) return controller.enqueue(chunk);
          this.#ends.delete(end);
          if (hasRoom()) return controller.close();
          // The request is decided without this body, so that another one finds room.
          this.#room.close(share);
          fail(controller, "Too many bodies are being read.");
        },
        cancel: () => {
          this.#ends.delete(end);
          read.cancel();
        },
      },
      { highWaterMark: 0 },
    );
  }
}

/** Returns functions that read the next bytes, undefined at the end, and that drop the rest. */
function readerOf(body: ReadableStream<Uint8Array>) {
  const { reader, read } = byteReaderOf(body);
  return {
    async next(): Promise<Uint8Array | undefined> {
      const { done, value } = await read();
      if (done) return undefined;
      // A short chunk must not keep the memory of a long read.
      return value.byteLength < value.buffer.byteLength ? value.slice() : value;
    },
    // Does not wait, because the cancellation of a clone ends only with the other clone.
    cancel: () => void reader.cancel().catch(() => {}),
  };
}

function byteReaderOf(body: ReadableStream<Uint8Array>) {
  try {
    // By default, the runtime reads 4 KiB at once. Reading many chunks takes long.
    const reader = body.getReader({ mode: "byob" });
    return { reader, read: () => reader.read(new Uint8Array(MAX_READ_BYTES)) };
  } catch {
    // The streams of apps may have no such reader.
    const reader = body.getReader();
    return { reader, read: () => reader.read() };
  }
}
