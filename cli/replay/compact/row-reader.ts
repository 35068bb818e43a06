import { LineReader } from "../../logs/lines.ts";
import type { LogRequest } from "../../logs/log-request.ts";
import type { LineInput, RequestReader } from "../../logs/request-form.ts";
import { AccessLineScanner } from "./access-line-scanner.ts";
import type { Chunk } from "./chunk.ts";
import type { CompactClients } from "./compact-clients.ts";
import type { RequestRows } from "./request-rows.ts";
import type { RuleSets } from "./rule-sets.ts";

const NEWLINE = 10;
/** No shorter line is too long when its bytes that are no UTF-8 are replaced by three bytes each. */
const MAX_LENGTH = 21_845;

/** What rows refer to. */
export interface RowTables {
  readonly rows: RequestRows;
  readonly clients: CompactClients;
  readonly ruleSets: RuleSets;
}

/**
 * Reads the lines of one file into rows. Lines of another form than the usual one are parsed by the general reader,
 * and so are lines that begin in one chunk and end in another one.
 */
export class RowReader implements RequestReader<number> {
  readonly #tables: RowTables;
  readonly #lines: LineReader;
  readonly #host: string | undefined;
  readonly #scanner = new AccessLineScanner();
  /** Whether the general reader has the start of a line. The first line may have a byte order mark. */
  #isWithinLine = true;
  #read: number[] = [];

  constructor(input: LineInput, tables: RowTables) {
    this.#lines = new LineReader(input);
    this.#host = input.host;
    this.#tables = tables;
  }

  push(chunk: Buffer): number[] {
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    let from = 0;
    if (this.#isWithinLine && end > 0) {
      from = chunk.indexOf(NEWLINE) + 1;
      this.#pushLines(chunk.subarray(0, from));
    }
    if (end > from) this.#readLines(chunk.subarray(from, end));
    if (end < chunk.length) {
      this.#pushLines(chunk.subarray(end));
      this.#isWithinLine = true;
    } else if (end > 0) this.#isWithinLine = false;
    return this.#take();
  }

  end(): number[] {
    this.#addObjects(this.#lines.end());
    return this.#take();
  }

  #take(): number[] {
    const read = this.#read;
    this.#read = [];
    return read;
  }

  #pushLines(bytes: Buffer): void {
    this.#addObjects(this.#lines.push(bytes));
  }

  #addObjects(requests: readonly LogRequest[]): void {
    for (const request of requests) this.#read.push(addObject(request, this.#tables));
  }

  /** @param bytes whole lines */
  #readLines(bytes: Buffer): void {
    const { rows } = this.#tables;
    const number = rows.addChunk(bytes);
    const chunk = rows.chunk(number);
    let from = 0;
    while (from < bytes.length) {
      const isUsual = this.#scanner.read(chunk.bytes, from, bytes.length);
      const end = chunk.newlineFrom(isUsual ? this.#scanner.restAt : from);
      const address = isUsual && end - from <= MAX_LENGTH ? this.#address(chunk, from) : 0;
      if (address === 0) this.#pushLines(bytes.subarray(from, end + 1));
      else this.#add(address, number, from, end);
      from = end + 1;
    }
    rows.endChunk(number);
  }

  #add(address: number, number: number, from: number, end: number): void {
    const { rows, ruleSets } = this.#tables;
    const scanner = this.#scanner;
    const row = rows.add(number, from, end - from);
    rows.at[row] = scanner.at;
    rows.address[row] = address;
    rows.rules[row] = ruleSets.ofLine(rows.chunk(number).bytes, scanner, this.#host);
    rows.status[row] = scanner.status;
    this.#lines.passLine();
    this.#read.push(row);
  }

  /** @returns the number of the address of the scanned line; 0 if there is no address */
  #address({ bytes }: Chunk, from: number): number {
    const { clients } = this.#tables;
    if (clients.isFull) makeSpace(this.#tables);
    const { isIPv4, ipv4, addressEnd } = this.#scanner;
    if (isIPv4) return clients.ofIPv4(ipv4);
    return clients.ofBytes(bytes, from, addressEnd);
  }
}

/** Adds a row for a request that was read as an object and has an address. */
export function addObject(request: LogRequest, tables: RowTables): number {
  const { rows, clients, ruleSets } = tables;
  if (clients.isFull) makeSpace(tables);
  const row = rows.addObject(request);
  rows.at[row] = request.at;
  rows.address[row] = clients.ofAddress(request.ip as string);
  rows.rules[row] = ruleSets.ofRequest(request);
  rows.status[row] = request.status ?? 0;
  return row;
}

function makeSpace({ rows, clients }: RowTables): void {
  const renumbered = clients.makeSpace(rows.addresses());
  for (const row of rows) rows.address[row] = renumbered[rows.address[row] as number] as number;
}
