/** The format of metrics: OpenMetrics 1.0.0, or the older text format of Prometheus 0.0.4. */
export type MetricsFormat = "openmetrics" | "prometheus";

/** A metric with all of its samples, called a metric family in OpenMetrics. */
export interface Metric {
  /** The name without the suffix `_total`, `_info`, `_bucket` and so on. Ends with the unit, if any. */
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram" | "info";
  readonly unit?: "seconds";
  readonly help: string;
  readonly samples: readonly Sample[];
}

export interface Sample {
  /** Follows the name of the metric, such as `_bucket`. The default is the suffix of the metric's type. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The media types of the formats. */
export const CONTENT_TYPE = {
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
} as const satisfies Record<MetricsFormat, string>;

const SUFFIX = { counter: "_total", gauge: "", histogram: "", info: "_info" } as const;

/** Writes metrics as text. A metric without samples is left out. */
export function metricsText(metrics: readonly Metric[], format: MetricsFormat): string {
  const lines: string[] = [];
  for (const metric of metrics) {
    if (metric.samples.length === 0) continue;
    lines.push(...headOf(metric, format));
    for (const { suffix = SUFFIX[metric.type], labels = {}, value } of metric.samples) {
      lines.push(`${metric.name}${suffix}${labelsText(labels)} ${numberText(value)}`);
    }
  }
  if (format === "openmetrics") lines.push("# EOF");
  return `${lines.join("\n")}\n`;
}

/** Returns the lines that describe a metric. The older format gives them the name of the samples. */
function headOf({ name, type, unit, help }: Metric, format: MetricsFormat): string[] {
  if (format === "prometheus") {
    const sampleName = name + SUFFIX[type];
    return [
      `# HELP ${sampleName} ${escaped(help)}`,
      // The older format has no type for information, which is a gauge of the value 1.
      `# TYPE ${sampleName} ${type === "info" ? "gauge" : type}`,
    ];
  }
  return [
    `# TYPE ${name} ${type}`,
    ...(unit ? [`# UNIT ${name} ${unit}`] : []),
    `# HELP ${name} ${escaped(help, true)}`,
  ];
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value, true)}"`);
  return pairs.length > 0 ? `{${pairs.join(",")}}` : "";
}

/** @param quotes whether double quotes are escaped, too */
function escaped(text: string, quotes = false): string {
  const safe = text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n");
  return quotes ? safe.replace(/"/g, '\\"') : safe;
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}
