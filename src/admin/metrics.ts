import { parseDuration } from "../config/duration.ts";
import type { Totals } from "../control/protocol.ts";
import { LATENCY_BOUNDS_MS, type RuleSums, type StoreSums } from "../statistics/sums.ts";
import type { RuleView } from "./operations.ts";

/** The version of Weir, as in its package.json, which a Worker cannot read. */
export const VERSION = "0.1.0";

/** The media type of {@link metricsText}. */
export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** A metric with all of its samples. */
interface Metric {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly samples: readonly Sample[];
}

interface Sample {
  /** The text after the name of the metric. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Writes metrics in the text format of Prometheus 0.0.4. Omits a metric without samples. */
export function metricsText(metrics: readonly Metric[]): string {
  const lines: string[] = [];
  for (const { name, type, help, samples } of metrics) {
    if (samples.length === 0) continue;
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    for (const { suffix = "", labels = {}, value } of samples) {
      lines.push(`${name}${suffix}${labelsText(labels)} ${value}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length > 0 ? `{${pairs.join(",")}}` : "";
}

function escaped(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/"/g, '\\"');
}

/** The outcomes that a rule of each mode can have. Other outcomes are shown only if they occurred. */
const OUTCOMES_OF_MODE = {
  enforce: ["allowed", "limited", "undecided"],
  mark: ["allowed", "marked", "undecided"],
  shadow: ["shadow_limited", "undecided"],
} as const satisfies Record<RuleView["configuredMode"], readonly Outcome[]>;

const SUM_OF_OUTCOME = {
  allowed: "allowed",
  limited: "limited",
  marked: "marked",
  undecided: "undecided",
  shadow_limited: "shadowLimited",
} as const satisfies Record<string, keyof RuleSums>;

type Outcome = keyof typeof SUM_OF_OUTCOME;

const OUTCOMES = Object.keys(SUM_OF_OUTCOME) as Outcome[];

/**
 * Returns all metrics. Their labels contain names of the configuration, but no value of a client. A rule without
 * requests has zeros, so that its first increase is visible.
 *
 * @param rules the rules of the configuration. Removed rules keep their counts
 */
export function metricsOf(totals: Totals, rules: readonly RuleView[]): Metric[] {
  return [
    gauge("weir_info", "The version of Weir.", [{ labels: { version: VERSION }, value: 1 }]),
    gauge(
      "weir_statistics_start_timestamp_seconds",
      "When the counters began, since the Unix epoch.",
      totals.since / 1000,
    ),
    ...requestMetrics(totals),
    ...ruleMetrics(totals, rules),
    ...limitMetrics(rules),
    ...storeMetrics(totals.store),
    gauge("weir_isolates", "Isolates that uploaded sums in the last seconds.", totals.isolates),
    gauge(
      "weir_open_breakers",
      "Isolates that do not call the store at present, because it has failed.",
      totals.openBreakers,
    ),
    gauge("weir_overrides", "Live overrides that have not ended.", totals.overrides),
  ];
}

function requestMetrics({ requests }: Totals): Metric[] {
  const outcomes = {
    allowed: requests.allowed,
    limited: requests.limited,
    unmatched: requests.unmatched,
    refused: requests.refused,
    undecided_passed: requests.undecidedPassed,
    undecided_denied: requests.undecidedDenied,
  };
  return [
    counter(
      "weir_requests_total",
      "Requests by their outcome for the client.",
      Object.entries(outcomes).map(([outcome, value]) => ({ labels: { outcome }, value })),
    ),
    counter(
      "weir_requests_from_memory_total",
      "Requests whose enforced rules needed no call to the store.",
      requests.fromMemory,
    ),
    counter(
      "weir_requests_counted_locally_total",
      "Requests that an isolate decided alone, because the store had failed.",
      requests.countedLocally,
    ),
    counter(
      "weir_requests_ahead_total",
      "Requests that passed before the store had decided them.",
      requests.ahead,
    ),
    counter(
      "weir_requests_ahead_over_total",
      "Requests that the store denied after they had passed.",
      requests.over,
    ),
    counter(
      "weir_requests_waited_total",
      "Requests that have waited for their turn.",
      requests.waited,
    ),
    counter(
      "weir_requests_wait_seconds_total",
      "The sum of the times for which requests have waited.",
      requests.waitedMs / 1000,
    ),
  ];
}

function ruleMetrics({ rules: sums }: Totals, rules: readonly RuleView[]): Metric[] {
  const modes = new Map(rules.map(({ name, configuredMode }) => [name, configuredMode]));
  const names = [...new Set([...modes.keys(), ...Object.keys(sums)])].sort();
  const sumOf = (rule: string, field: keyof RuleSums) =>
    Object.hasOwn(sums, rule) ? (sums[rule]?.[field] ?? 0) : 0;
  const outcomesOf = (rule: string): Sample[] => {
    const mode = modes.get(rule);
    const usual: readonly Outcome[] = mode ? OUTCOMES_OF_MODE[mode] : [];
    return OUTCOMES.flatMap((outcome) => {
      const value = sumOf(rule, SUM_OF_OUTCOME[outcome]);
      return value > 0 || usual.includes(outcome) ? [{ labels: { rule, outcome }, value }] : [];
    });
  };
  /** Returns the samples of the rules that can have a number, or that have had it. */
  const ofSome = (field: keyof RuleSums, canHave: (rule: RuleView) => unknown): Sample[] => {
    const having = new Set(rules.filter(canHave).map(({ name }) => name));
    return names.flatMap((rule) => {
      const value = sumOf(rule, field);
      return value > 0 || having.has(rule) ? [{ labels: { rule }, value }] : [];
    });
  };
  return [
    counter(
      "weir_rule_requests_total",
      "Requests to which a rule applied.",
      names.map((rule) => ({ labels: { rule }, value: sumOf(rule, "requests") })),
    ),
    counter(
      "weir_rule_outcomes_total",
      "Requests to which a rule applied, by the outcome under this rule.",
      names.flatMap(outcomesOf),
    ),
    counter(
      "weir_rule_requests_ahead_total",
      "Requests that passed before the store had decided the rule.",
      ofSome("ahead", (rule) => rule.async),
    ),
    counter(
      "weir_rule_requests_ahead_over_total",
      "Requests over the limit of the rule that had passed before the store denied them.",
      ofSome("over", (rule) => rule.async),
    ),
    gauge(
      "weir_rule_open_requests_highest",
      "The highest number of open requests of one client in the last five minutes.",
      ofSome("openPeak", ({ limits }) => limits.some(({ concurrent }) => concurrent)),
    ),
    gauge(
      "weir_rule_info",
      "The rules of the configuration, with their modes after overrides.",
      rules.map(({ name, key, mode, configuredMode, onError }) => ({
        labels: { rule: name, key, mode, configured_mode: configuredMode, on_error: onError },
        value: 1,
      })),
    ),
  ];
}

/** Returns the limits of each client. In a rule with tiers or a source, clients can have other limits. */
function limitMetrics(rules: readonly RuleView[]): Metric[] {
  const policies = rules.flatMap(({ name, limits }) =>
    limits.map((each) => ({ ...each, labels: { rule: name, policy: each.policy } })),
  );
  return [
    gauge(
      "weir_rule_limit",
      "The quota of each window of a rule for a client, or the maximum of its open requests, after the rule's override.",
      policies.map(({ labels, limit }) => ({ labels, value: limit })),
    ),
    gauge(
      "weir_rule_window_seconds",
      "The length of each window of a rule, except for calendar windows.",
      policies.flatMap(({ labels, window }) => {
        const value = parseDuration(window);
        return value === undefined ? [] : [{ labels, value }];
      }),
    ),
  ];
}

function storeMetrics({ calls, failures, commands, latency, latencyMs }: StoreSums): Metric[] {
  let count = 0;
  const buckets = [...LATENCY_BOUNDS_MS, Number.POSITIVE_INFINITY].map((bound, index) => {
    count += latency[index] ?? 0;
    return { suffix: "_bucket", labels: { le: boundText(bound / 1000) }, value: count } as const;
  });
  return [
    counter("weir_store_calls_total", "Calls to the store.", calls),
    counter("weir_store_failures_total", "Calls to the store that failed.", failures),
    counter(
      "weir_store_commands_total",
      "Commands of Redis that Upstash bills, as the script counts them.",
      commands,
    ),
    {
      name: "weir_store_call_duration_seconds",
      type: "histogram",
      help: "The duration of the calls to the store.",
      samples: [
        ...buckets,
        { suffix: "_sum", value: latencyMs / 1000 },
        { suffix: "_count", value: count },
      ],
    },
  ];
}

/** Returns the text of a bucket's bound, such as `1.0`. */
function boundText(seconds: number): string {
  if (!Number.isFinite(seconds)) return "+Inf";
  return Number.isInteger(seconds) ? `${seconds}.0` : String(seconds);
}

type Values = number | readonly Sample[];

function counter(name: string, help: string, values: Values): Metric {
  return { name, type: "counter", help, samples: samplesOf(values) };
}

function gauge(name: string, help: string, values: Values): Metric {
  return { name, type: "gauge", help, samples: samplesOf(values) };
}

function samplesOf(values: Values): readonly Sample[] {
  return typeof values === "number" ? [{ value: values }] : values;
}
