import type { AccessLineParser } from "../../logs/access-line.ts";
import type { LogRequest } from "../../logs/log-request.ts";
import type { RequestRows } from "./request-rows.ts";

/** A request of a row as an object. Its line is parsed only when a ranking reads a text of it. */
export class DeniedRow implements LogRequest {
  readonly at: number;
  readonly ip: string;
  readonly status: number | undefined;
  readonly host = undefined;
  readonly headers = undefined;
  readonly responseHeaders = undefined;
  readonly cf = undefined;
  readonly bodyBytes = undefined;
  readonly durationMs = undefined;
  readonly #rows: RequestRows;
  readonly #row: number;
  readonly #parser: AccessLineParser;
  #parsed: LogRequest | undefined;

  /** Valid while the row is in use. @param ip the address */
  constructor(rows: RequestRows, row: number, ip: string, parser: AccessLineParser) {
    this.#rows = rows;
    this.#row = row;
    this.#parser = parser;
    this.at = rows.at[row] as number;
    this.ip = ip;
    this.status = rows.status[row] || undefined;
  }

  get method(): string {
    return this.#request.method;
  }

  get target(): string {
    return this.#request.target;
  }

  get userAgent(): string | undefined {
    return this.#request.userAgent;
  }

  get #request(): LogRequest {
    this.#parsed ??=
      this.#rows.object(this.#row) ??
      (this.#parser.parse(this.#rows.line(this.#row)) as LogRequest);
    return this.#parsed;
  }
}
