import type { LogRequest } from "../../logs/log-request.ts";
import { Chunk } from "./chunk.ts";

const FIRST_ROWS = 4096;
/** The size of most chunks. Larger ones are not used again. */
const CHUNK_BYTES = 256 * 1024;
const MAX_SPARE = 64;

/** In `chunk`: the row is free, or its request is an object. */
const FREE = -1;
const IS_OBJECT = -2;

/**
 * Requests that wait, one in each row, without an object or a text for each. A row has the number of the client's
 * address and that of the request's rules, and refers to its line, so that the line can be parsed when it is needed.
 */
export class RequestRows {
  at = new Float64Array(FIRST_ROWS);
  /** Numbers of `CompactClients`. */
  address = new Uint32Array(FIRST_ROWS);
  /** Indices of `RowRoutes.sets`. */
  rules = new Uint32Array(FIRST_ROWS);
  /** 0 for a request without a response. */
  status = new Uint16Array(FIRST_ROWS);
  #chunk = new Int32Array(FIRST_ROWS).fill(FREE);
  #start = new Uint32Array(FIRST_ROWS);
  #length = new Uint16Array(FIRST_ROWS);
  #free = new Uint32Array(FIRST_ROWS);
  #freeCount = 0;
  #used = 0;
  readonly #objects = new Map<number, LogRequest>();
  readonly #chunks: Chunk[] = [];
  readonly #freeChunks: number[] = [];
  /** The number of chunks from which lines are moved together. */
  #maxChunks = 2 * MAX_SPARE;

  /** The number of rows that are in use. */
  get size(): number {
    return this.#used - this.#freeCount;
  }

  /** The number of chunks in memory that rows refer to. */
  get chunks(): number {
    return this.#chunks.length - this.#freeChunks.length;
  }

  /** Copies bytes for rows that will refer to them. @returns the number of the chunk */
  addChunk(content: Buffer): number {
    if (this.chunks >= this.#maxChunks) this.#moveTogether();
    const number = this.#freeChunks.pop() ?? this.#chunks.length;
    const spare = this.#chunks[number];
    const size = Math.max(CHUNK_BYTES, Math.ceil(content.length / 4) * 4);
    const chunk = spare && spare.bytes.length >= size ? spare : new Chunk(size);
    this.#chunks[number] = chunk;
    chunk.set(content);
    return number;
  }

  chunk(number: number): Chunk {
    return this.#chunks[number] as Chunk;
  }

  /** Makes a chunk free again if no row refers to it. */
  endChunk(number: number): void {
    const chunk = this.chunk(number);
    if (chunk.rows > 0) return;
    const isSpare = chunk.bytes.length === CHUNK_BYTES && this.#freeChunks.length < MAX_SPARE;
    if (!isSpare) this.#chunks[number] = NO_CHUNK;
    this.#freeChunks.push(number);
  }

  /** Adds a row that refers to a line. @returns its number */
  add(chunk: number, start: number, length: number): number {
    const row = this.#freeCount > 0 ? (this.#free[--this.#freeCount] as number) : this.#append();
    this.#chunk[row] = chunk;
    this.#start[row] = start;
    this.#length[row] = length;
    (this.#chunks[chunk] as Chunk).rows++;
    return row;
  }

  /** Adds a row for a request that was read as an object. */
  addObject(request: LogRequest): number {
    const row = this.#freeCount > 0 ? (this.#free[--this.#freeCount] as number) : this.#append();
    this.#chunk[row] = IS_OBJECT;
    this.#objects.set(row, request);
    return row;
  }

  /** The request, if it was read as an object. */
  object(row: number): LogRequest | undefined {
    return this.#chunk[row] === IS_OBJECT ? this.#objects.get(row) : undefined;
  }

  /** The line of a row without an object. */
  line(row: number): string {
    const start = this.#start[row] as number;
    const end = start + (this.#length[row] as number);
    return this.chunk(this.#chunk[row] as number).lineAt(start, end);
  }

  remove(row: number): void {
    const number = this.#chunk[row] as number;
    if (number === IS_OBJECT) this.#objects.delete(row);
    else {
      const chunk = this.#chunks[number] as Chunk;
      if (--chunk.rows === 0) this.endChunk(number);
    }
    this.#chunk[row] = FREE;
    this.#free[this.#freeCount++] = row;
  }

  /** Yields all rows that are in use. */
  *[Symbol.iterator](): Generator<number> {
    for (let row = 0; row < this.#used; row++) if (this.#chunk[row] !== FREE) yield row;
  }

  /** Yields the addresses of all rows that are in use. */
  *addresses(): Generator<number> {
    for (const row of this) yield this.address[row] as number;
  }

  #append(): number {
    if (this.#used === this.at.length) this.#grow();
    return this.#used++;
  }

  #grow(): void {
    const rows = 2 * this.at.length;
    this.at = copied(this.at, new Float64Array(rows));
    this.address = copied(this.address, new Uint32Array(rows));
    this.rules = copied(this.rules, new Uint32Array(rows));
    this.status = copied(this.status, new Uint16Array(rows));
    this.#chunk = copied(this.#chunk, new Int32Array(rows).fill(FREE));
    this.#start = copied(this.#start, new Uint32Array(rows));
    this.#length = copied(this.#length, new Uint16Array(rows));
    this.#free = copied(this.#free, new Uint32Array(rows));
  }

  /**
   * Moves the lines that rows refer to into as few chunks as possible. A line whose time is far from that of its
   * neighbours waits longer than they do, so many chunks may have a few such lines only.
   */
  #moveTogether(): void {
    const before = this.#chunks.splice(0);
    this.#freeChunks.length = 0;
    let [number, end] = [-1, CHUNK_BYTES];
    for (const row of this) {
      if (this.#chunk[row] === IS_OBJECT) continue;
      const { bytes } = before[this.#chunk[row] as number] as Chunk;
      const start = this.#start[row] as number;
      const length = this.#length[row] as number;
      if (end + length > CHUNK_BYTES) {
        number = this.#chunks.push(new Chunk(CHUNK_BYTES)) - 1;
        end = 0;
      }
      const chunk = this.chunk(number);
      bytes.copy(chunk.bytes, end, start, start + length);
      chunk.rows++;
      this.#chunk[row] = number;
      this.#start[row] = end;
      end += length;
    }
    this.#maxChunks = Math.max(2 * MAX_SPARE, 2 * this.#chunks.length);
  }
}

const NO_CHUNK = new Chunk(0);

function copied<Column extends { set(source: Column): void }>(from: Column, to: Column): Column {
  to.set(from);
  return to;
}
