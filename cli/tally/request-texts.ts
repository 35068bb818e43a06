import type { LogRequest } from "../logs/log-request.ts";

/** The maximum length of a method, in characters. */
const MAX_METHOD = 20;
const [QUESTION_MARK, NUMBER_SIGN, SEMICOLON] = [0x3f, 0x23, 0x3b];

/** The texts of a request that reports show. The object is reused: several rankings count the same request. */
export class RequestTexts {
  #request: LogRequest | undefined;
  /** Empty if the request has none. */
  userAgent = "";
  /** The method and the path, without a query, which may contain credentials. */
  path = "";

  /** Reads the texts of a request. */
  read(request: LogRequest): this {
    if (this.#request === request) return this;
    this.#request = request;
    this.userAgent = request.userAgent ?? "";
    this.path = `${request.method.slice(0, MAX_METHOD)} ${pathOf(request.target)}`;
    return this;
  }
}

/** Returns the path of a target, up to its query, its parameters or its fragment. */
function pathOf(target: string): string {
  for (let end = 0; end < target.length; end++) {
    const unit = target.charCodeAt(end);
    if (unit === QUESTION_MARK || unit === NUMBER_SIGN || unit === SEMICOLON) {
      return target.slice(0, end);
    }
  }
  return target;
}
