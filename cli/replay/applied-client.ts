import type { Row } from "../../src/engine/counter.ts";
import { type RuleCounter, ruleCountersOf } from "../../src/limiter/counters.ts";
import type { AppliedRule } from "../../src/request/applied-rule.ts";
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

/** A row that writes change in place, so that clients can keep a reference to it. */
export interface LiveRow extends Mutable<Row> {
  /**
   * Whether only clients of one identity refer to the row. Then it serves their later windows too, because
   * millions of new objects would take long to collect.
   */
  readonly isOwned: boolean;
}

type Mutable<Type> = { -readonly [Field in keyof Type]: Type[Field] };

/** The window of a row before its first use. */
const NO_WINDOW = Number.MIN_SAFE_INTEGER;

/**
 * A client that remembers the rows of its counters. Then most decisions neither build a key nor look one up,
 * which would take longer than the decision. The client is itself a row, because each further object takes time
 * and memory.
 */
export class RememberedClient implements AppliedClient, LiveRow {
  readonly template: ClientTemplate;
  readonly client: string;
  readonly identity: string;
  window = NO_WINDOW;
  count = 0;
  expiresAt = 0;
  readonly isOwned = true;
  /** The last row that was found for the rule's first window, of this window or of an earlier one. */
  row: LiveRow;
  /** The same for the rule's other windows. */
  readonly otherRows: LiveRow[];
  #ruleCounters: RuleCounter[] | undefined;

  constructor(template: ClientTemplate, client: string, identity: string) {
    this.template = template;
    this.client = client;
    this.identity = identity;
    this.row = this;
    this.otherRows =
      template.counters.length === 1 ? NO_ROWS : template.counters.slice(1).map(newRow);
  }

  /** @param index the index of a window of the rule */
  rowAt(index: number): LiveRow {
    return index === 0 ? this.row : (this.otherRows[index - 1] as LiveRow);
  }

  setRow(index: number, row: LiveRow): void {
    if (index === 0) this.row = row;
    else this.otherRows[index - 1] = row;
  }

  get rule(): number {
    return this.template.index;
  }

  get appliedRule(): AppliedRule {
    const { rule, windows } = this.template;
    return { rule, windows, identity: this.identity };
  }

  /** The counters with the client's keys. Only decisions together with other rules need them. */
  get ruleCounters(): RuleCounter[] {
    this.#ruleCounters ??= ruleCountersOf(this.appliedRule, this.template.prefix);
    return this.#ruleCounters;
  }
}

const NO_ROWS: LiveRow[] = [];

export function newRow(): LiveRow {
  return { window: NO_WINDOW, count: 0, expiresAt: 0, isOwned: true };
}
