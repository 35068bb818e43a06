import type { Row } from "../../src/engine/counter.ts";
import { type RuleCounter, ruleCountersOf } from "../../src/limiter/counters.ts";
import type { AppliedRule } from "../../src/request/rule-applier.ts";
import type { ClientTemplate } from "./client-template.ts";

/** A rule that counts a request, with the counters to decide. */
export interface AppliedClient {
  /** The index of the rule among the replayed rules. */
  readonly rule: number;
  /** The client, as reports show it. */
  readonly client: string;
  readonly appliedRule: AppliedRule;
  readonly ruleCounters: RuleCounter[];
}

/** A row that later writes change in place. */
export interface LiveRow extends Mutable<Row> {
  /** The window under whose key the row is in the table of rows, if any. */
  storedWindow: number;
}

type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] };

/** In place of the number of a window, if there is none. */
const NO_WINDOW = Number.MIN_SAFE_INTEGER;

/**
 * A client that has the rows of its counters itself. Then most decisions need no key and no table, which would
 * take longer than the decision. It is the row of the rule's first window, because each further object takes
 * time and memory.
 */
export class RememberedClient implements AppliedClient, LiveRow {
  readonly template: ClientTemplate;
  readonly client: string;
  readonly identity: string;
  window = NO_WINDOW;
  count = 0;
  expiresAt = 0;
  storedWindow = NO_WINDOW;
  /** Whether the rows were left to the table of rows. Then another object may stand for this client. */
  isForgotten = false;
  /** The rows of the rule's other windows. */
  readonly #others: readonly LiveRow[];
  #ruleCounters: RuleCounter[] | undefined;

  constructor(template: ClientTemplate, client: string, identity: string) {
    this.template = template;
    this.client = client;
    this.identity = identity;
    this.#others = template.counters.length === 1 ? NONE : template.counters.slice(1).map(newRow);
  }

  /** @param index the index of a window of the rule */
  rowAt(index: number): LiveRow {
    return index === 0 ? this : (this.#others[index - 1] as LiveRow);
  }

  get rule(): number {
    return this.template.index;
  }

  get appliedRule(): AppliedRule {
    const { rule } = this.template;
    return { rule, windows: rule.windows, identity: this.identity };
  }

  /** The counters with the client's keys. Only decisions together with other rules need them. */
  get ruleCounters(): RuleCounter[] {
    this.#ruleCounters ??= ruleCountersOf(this.appliedRule, this.template.prefix);
    return this.#ruleCounters;
  }
}

const NONE: readonly LiveRow[] = [];

export function newRow(): LiveRow {
  return { window: NO_WINDOW, count: 0, expiresAt: 0, storedWindow: NO_WINDOW };
}
