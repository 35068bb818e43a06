/** A sample of a metric, as a program that scrapes metrics reads it. */
export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric, with its samples. */
export interface ParsedMetric {
  readonly name: string;
  type?: string;
  unit?: string;
  help?: string;
  readonly samples: ParsedSample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,(?=[a-zA-Z_])|$)/y;
const NUMBER = /^[+-]?(\d+(\.\d+)?([eE][+-]?\d+)?|Inf|NaN)$/;

/** The suffixes of the samples of each type. */
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ["_total", "_created"],
  gauge: [""],
  histogram: ["_bucket", "_count", "_sum", "_created"],
  info: ["_info"],
};

/** Returns the metrics in the format OpenMetrics 1.0.0, whose rules for names and samples are stricter. */
export function toOpenMetrics(text: string): string {
  return `${text.replaceAll(/^(# \w+ \w+)_total /gm, "$1 ")}# EOF\n`;
}

/**
 * Parses a text in the format OpenMetrics 1.0.0, as strictly as the standard allows.
 *
 * @throws {Error} if the text breaks a rule of the standard
 */
export function parseOpenMetrics(text: string): Map<string, ParsedMetric> {
  const metrics = new Map<string, ParsedMetric>();
  if (!text.endsWith("\n# EOF\n")) throw new Error("the text does not end with # EOF");
  let current: ParsedMetric | undefined;
  for (const line of text.slice(0, -"# EOF\n".length).split("\n").slice(0, -1)) {
    const [, field, name = "", rest = ""] = /^# (TYPE|UNIT|HELP) (\S+) (.*)$/.exec(line) ?? [];
    if (field) {
      if (current?.name !== name) {
        if (metrics.has(name)) throw new Error(`the lines of ${name} are not together`);
        if (!NAME.test(name)) throw new Error(`"${name}" is no name`);
        current = { name, samples: [] };
        metrics.set(name, current);
      }
      describe(current, field, rest);
    } else {
      const sample = sampleOf(line);
      if (!current) throw new Error(`no metric is described before ${line}`);
      const suffixes = SUFFIXES[current.type ?? ""] ?? [];
      const { name: metricName } = current;
      if (!suffixes.some((suffix) => sample.name === metricName + suffix)) {
        throw new Error(`${sample.name} is no sample of the ${current.type} ${metricName}`);
      }
      current.samples.push(sample);
    }
  }
  for (const metric of metrics.values()) checkSamples(metric);
  return metrics;
}

function describe(metric: ParsedMetric, field: string, text: string): void {
  const { name } = metric;
  if (metric.samples.length > 0) throw new Error(`${name} is described after its samples`);
  if (field === "TYPE") {
    if (metric.type !== undefined || !SUFFIXES[text]) throw new Error(`${name} has a bad type`);
    metric.type = text;
  } else if (field === "UNIT") {
    if (!name.endsWith(`_${text}`)) throw new Error(`${name} does not end with its unit`);
    metric.unit = text;
  } else {
    if (/[^\\]"|\\[^\\"n]/.test(text)) throw new Error(`the help of ${name} is not escaped`);
    metric.help = text;
  }
}

function sampleOf(line: string): ParsedSample {
  const [, name = "", , labelText = "", number = ""] =
    /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === "" || !NUMBER.test(number)) throw new Error(`not a sample: ${line}`);
  const value = Number(number.replace("Inf", "Infinity"));
  return { name, labels: labelsOf(labelText), value };
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name = "", value = ""] = LABEL.exec(text) ?? [];
    if (name === "") throw new Error(`not labels: ${text}`);
    if (Object.hasOwn(labels, name)) throw new Error(`the label ${name} occurs twice`);
    labels[name] = value.replace(/\\(.)/g, (_, char) => (char === "n" ? "\n" : char));
  }
  return labels;
}

function checkSamples({ name, type, samples }: ParsedMetric): void {
  const ids = samples.map((sample) => JSON.stringify([sample.name, sample.labels]));
  if (new Set(ids).size < ids.length) throw new Error(`a sample of ${name} occurs twice`);
  const isBad = samples.some(({ value }) =>
    type === "info" ? value !== 1 : type !== "gauge" && !(value >= 0),
  );
  if (isBad) throw new Error(`a sample of ${name} has a value that a ${type} cannot have`);
  if (type === "histogram") checkHistogram(name, samples);
}

/** Checks a histogram with one set of labels. */
function checkHistogram(name: string, samples: readonly ParsedSample[]): void {
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const bounds = buckets.map(({ labels }) => Number(labels.le?.replace("Inf", "Infinity")));
  const counts = buckets.map(({ value }) => value);
  const isRising = (values: readonly number[], step: number) =>
    values.every((value, index) => index === 0 || value >= (values[index - 1] ?? 0) + step);
  if (!isRising(bounds, Number.MIN_VALUE)) throw new Error(`the bounds of ${name} do not rise`);
  if (!isRising(counts, 0)) throw new Error(`the counts of ${name} decrease`);
  if (bounds.at(-1) !== Infinity) throw new Error(`${name} has no bucket +Inf`);
  const count = samples.find((sample) => sample.name === `${name}_count`);
  if (count?.value !== counts.at(-1))
    throw new Error(`the count of ${name} is not its last bucket`);
}
