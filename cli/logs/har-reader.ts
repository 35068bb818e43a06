import { JSONParser } from "@streamparser/json";
import { printable } from "../doctor/finding.ts";
import { HAR_PATHS, HarEntry } from "./har-entry.ts";
import { HarPosition } from "./har-position.ts";
import type { LogCounts } from "./log-progress.ts";
import type { LogFacts, LogRequest } from "./log-request.ts";
import type { RequestReader } from "./request-form.ts";

/** The maximum length of a single text, such as the body of a response, in bytes. */
const MAX_TEXT_BYTES = 64 * 1024 * 1024;

/** The number of names before an entry's own names: the root, `log`, `entries`, and the entry's number. */
const NAMES_BEFORE = 4;

/** Reads the entries of a HAR file one by one. If the file breaks off, the entries before that count. */
export class HarReader implements RequestReader {
  readonly #file: string;
  readonly #counts: LogCounts;
  readonly #host: string | undefined;
  readonly #parser: JSONParser;
  readonly #position = new HarPosition();
  #entry = new HarEntry();
  /** The number of entries that have been read to their end. */
  #ended = 0;
  #requests: LogRequest[] = [];
  #bytesSinceToken = 0;
  #hasFailed = false;
  #withCredentials = 0;
  /** Facts of the requests that have been read. */
  #total = 0;
  #withIp = 0;
  #withBodyBytes = 0;

  /**
   * @param file the name of the file, for the report
   * @param host the host of URLs that have none
   */
  constructor(file: string, counts: LogCounts, host: string | undefined) {
    this.#file = file;
    this.#counts = counts;
    this.#host = host;
    this.#parser = new JSONParser({
      paths: HAR_PATHS.map((path) => `$.log.entries.*.${path}`),
      // Otherwise, the parser would keep all entries.
      keepStack: false,
    });
    this.#parser.onValue = ({ value, key, stack }) => {
      const names = stack.slice(NAMES_BEFORE).map((item) => item.key);
      this.#entry.add((names.at(-1) === "headers" ? names : [...names, key]).join("."), value);
    };
    this.#parser.onToken = ({ token, value }) => {
      this.#bytesSinceToken = 0;
      if (this.#position.isEntryEnd(token, value)) this.#endEntry(undefined);
    };
  }

  push(chunk: Buffer): LogRequest[] {
    if (this.#hasFailed) return [];
    this.#bytesSinceToken += chunk.length;
    try {
      this.#parser.write(chunk);
      if (this.#bytesSinceToken > MAX_TEXT_BYTES) throw new Error("a text is longer than 64 MiB");
    } catch (error) {
      this.#fail((error as Error).message);
    }
    return this.#take();
  }

  end(): LogRequest[] {
    if (!this.#hasFailed && !this.#parser.isEnded) this.#fail("it ends too early");
    if (this.#total > 0 && this.#withCredentials === 0) {
      this.#counts.addNote(
        `No request of ${this.#file} has the header fields cookie or authorization. Browsers leave them out of HAR files unless the export includes sensitive data.`,
      );
    }
    return this.#take();
  }

  /** What the requests that have been read so far state. */
  facts(): LogFacts {
    const hasRequests = this.#total > 0;
    return {
      isMappable: false,
      ip: hasRequests && this.#withIp === this.#total,
      host: true,
      status: true,
      country: false,
      asn: false,
      bots: false,
      ja4: false,
      bodyBytes: hasRequests && this.#withBodyBytes === this.#total,
      headers: "all",
      responseHeaders: "all",
    };
  }

  #take(): LogRequest[] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }

  /** @param problem why the entry is broken, if that is known already */
  #endEntry(problem: string | undefined): void {
    const content = problem ?? this.#entry.request(this.#host);
    this.#ended++;
    this.#counts.lines++;
    if (typeof content === "string") {
      this.#counts.addBroken(this.#file, this.#ended, content, this.#entry.text);
    } else {
      this.#requests.push(content);
      this.#total++;
      if (content.ip !== undefined) this.#withIp++;
      if (content.bodyBytes !== undefined) this.#withBodyBytes++;
      const { headers } = content;
      if (headers?.has("cookie") || headers?.has("authorization")) this.#withCredentials++;
    }
    this.#entry = new HarEntry();
  }

  #fail(reason: string): void {
    this.#hasFailed = true;
    if (this.#position.entry > this.#ended) this.#endEntry("the file breaks off in it");
    this.#counts.addIncomplete(
      `${this.#file} could be read only up to entry ${this.#ended}: ${printable(withoutValues(reason)).slice(0, 200)}.`,
    );
  }
}

/** The parser's messages have the text that it did not expect in parentheses. */
function withoutValues(message: string): string {
  return message.split(" (", 1)[0] ?? "";
}
