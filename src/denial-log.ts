/** A request that a rule has denied, or would have denied in shadow mode. */
export interface Denial {
  /** `local`: this isolate counted alone, because the store failed (`onError: "local"`). */
  readonly mode: "enforce" | "shadow" | "local";
  readonly rule: string;
  readonly policy: string;
  /** The client's identity under the rule: a hash, as in the keys of the store. */
  readonly client: string;
  readonly cost: number;
  readonly retryAfterMs: number;
}

/** The parts of a request that a log line contains. Both values may be anything. */
export interface RequestPlace {
  readonly headers: Pick<Headers, "get">;
  readonly cf?: unknown;
}

/** The maximum number of rules that a summary names. */
const MAX_RULES = 20;

/**
 * Cloudflare sets `cf-ray` and `cf.colo`. Without Cloudflare in front, a client can send any
 * `cf-ray`, so the log leaves out other texts.
 */
const RAY = /^[0-9a-f]{8,32}(-[A-Z]{3})?$/i;
const COLO = /^[A-Z0-9]{1,8}$/i;

/**
 * Logs a line for each denial, but at most a given number in each second of the clock. The denials
 * of a second that got no line are counted by rule, and reported in one more line. It is logged by
 * the first denial of a later second, or when the second ends if no denial comes until then.
 */
export class DenialLog {
  readonly #write: (event: string, fields: Record<string, unknown>) => void;
  readonly #background: (task: Promise<void>) => void;
  /** The second of the last denial, since the Unix epoch. */
  #second = 0;
  #lines = 0;
  /** The number of denials without a line, by rule. Empty most of the time. */
  readonly #omitted = new Map<string, number>();
  /** The number of denials without a line whose rules are not in `#omitted`. */
  #otherOmitted = 0;
  /** The second in which a request began to wait for its end. */
  #waitingSecond = 0;

  /** @param background lets a task end after the request of the denial has ended */
  constructor(
    write: (event: string, fields: Record<string, unknown>) => void,
    background: (task: Promise<void>) => void,
  ) {
    this.#write = write;
    this.#background = background;
  }

  /**
   * @param linesPerSecond the maximum number of lines; 0 logs nothing
   * @param place undefined for calls of programs, which have no request
   */
  add(denial: Denial, linesPerSecond: number, place?: RequestPlace): void {
    if (linesPerSecond === 0) return;
    const now = Date.now();
    const second = Math.floor(now / 1000);
    if (second !== this.#second) {
      this.#logOmitted();
      this.#second = second;
      this.#lines = 0;
    }
    if (this.#lines < linesPerSecond) {
      this.#lines++;
      this.#write("denied", { ...denial, ...(place && fieldsOf(place)) });
      return;
    }
    this.#omit(denial.rule);
    if (this.#waitingSecond === second) return;
    // A flag that the runtime's end of this request left set would concern this second only.
    this.#waitingSecond = second;
    this.#background(this.#logOmittedIn(1000 - (now % 1000)));
  }

  #omit(rule: string): void {
    const count = this.#omitted.get(rule);
    if (count === undefined && this.#omitted.size === MAX_RULES) this.#otherOmitted++;
    else this.#omitted.set(rule, (count ?? 0) + 1);
  }

  async #logOmittedIn(delayMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    this.#logOmitted();
    // A timer can end a little early. Then the rest of the second needs another one.
    this.#waitingSecond = 0;
  }

  #logOmitted(): void {
    if (this.#omitted.size === 0) return;
    const rules = Object.fromEntries(this.#omitted);
    const others = this.#otherOmitted;
    this.#omitted.clear();
    this.#otherOmitted = 0;
    const count = Object.values(rules).reduce((sum, each) => sum + each, others);
    this.#write("denied-omitted", { count, rules, ...(others > 0 && { others }) });
  }
}

function fieldsOf({ headers, cf }: RequestPlace): { colo?: string; ray?: string } {
  const ray = headers.get("cf-ray");
  const colo = (cf as { colo?: unknown } | null | undefined)?.colo;
  return {
    ...(typeof colo === "string" && COLO.test(colo) && { colo }),
    ...(ray && RAY.test(ray) && { ray }),
  };
}
