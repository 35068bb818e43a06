import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { apiRoutes } from "../../../src/admin/api.ts";
import { metricsOf, metricsText } from "../../../src/admin/metrics.ts";
import { RULES, TOTALS } from "../support/metrics.ts";
import {
  type ParsedMetric,
  type ParsedSample,
  parseOpenMetrics,
  toOpenMetrics,
} from "../support/openmetrics.ts";
import { hasPromtool, promtool } from "../support/promtool.ts";
import { readPage } from "./pages.ts";

const ALERTS = "deploy/prometheus/alerts.yml";
const DASHBOARD = "deploy/grafana/weir.json";

const metrics = [
  ...parseOpenMetrics(toOpenMetrics(metricsText(metricsOf(TOTALS, RULES)))).values(),
];
const samples = metrics.flatMap((metric) => metric.samples);
const alerts = readFileSync(ALERTS, "utf8");
const page = readPage("docs/operating.md");

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly targets?: readonly { readonly expr: string }[];
}

const dashboard: { panels: Panel[]; templating: object } = JSON.parse(
  readFileSync(DASHBOARD, "utf8"),
);
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** Returns the name under which a metric appears in queries. */
function queriedName({ name, type }: ParsedMetric): string {
  return name + ({ counter: "_total" }[type ?? ""] ?? "");
}

/** Returns the faults of a query: names, labels and values that Weir does not write. */
function faultsOf(query: string): string[] {
  const selectors = query.matchAll(/\b(weir_[a-z0-9_]+)(?:\{([^}]*)\})?/g);
  return [...selectors].flatMap(([, name = "", matchers = ""]) => {
    const ofName = samples.filter((sample) => sample.name === name);
    if (ofName.length === 0) return [`no metric ${name}`];
    const conditions = matchers.matchAll(/(\w+)(=~|=)"([^"]*)"/g);
    return [...conditions].flatMap(([text, label = "", operator, value = ""]) => {
      if (label === "job" || value.startsWith("$")) return label in labelsOf(ofName) ? [] : [text];
      const pattern = new RegExp(`^(?:${value})$`);
      const fits = (given = "") => (operator === "=" ? given === value : pattern.test(given));
      return ofName.some(({ labels }) => fits(labels[label])) ? [] : [text];
    });
  });
}

/** Returns all labels of the samples, and the label that Prometheus adds. */
function labelsOf(all: readonly ParsedSample[]): object {
  return Object.assign({ job: "" }, ...all.map(({ labels }) => labels));
}

describe("docs/operating.md", () => {
  it("lists all metrics with their types and labels", () => {
    const rows = page.lines.flatMap((line) => {
      const [, name, type, labels = ""] = /^\| `(weir_\w+)` \| (\w+) \| ([^|]*)\|/.exec(line) ?? [];
      return name ? [`${name} ${type} ${labels.replace(/[`\s]/g, "")}`] : [];
    });
    const written = metrics.map((metric) => {
      const labels = new Set(metric.samples.flatMap((sample) => Object.keys(sample.labels)));
      return `${queriedName(metric)} ${metric.type} ${[...labels].join(",")}`;
    });
    expect(rows).toEqual(written);
  });

  it("names all outcomes", () => {
    const named = page.lines.join("\n").split("- **`outcome` of requests**")[1] ?? "";
    const outcomes = new Set(samples.flatMap(({ labels }) => labels.outcome ?? []));
    expect([...outcomes].filter((outcome) => !named.includes(`\`${outcome}\``))).toEqual([]);
  });

  it("lists the API's requests", () => {
    const rows = page.lines.flatMap((line) => {
      const [, method, path] = /^\| `([A-Z]+) (\w[\w-]*)[ ?`]/.exec(line) ?? [];
      return method ? [`${method} /${path}`] : [];
    });
    const routes = apiRoutes.routes.map(({ method, path }) => `${method} ${path}`);
    expect(rows.toSorted()).toEqual(routes.toSorted());
  });

  it("lists all alerts", () => {
    const [, list = ""] = page.lines.join("\n").split("**Alerts**");
    const listed = [...list.matchAll(/`(Weir\w+)`/g)].map(([, name]) => name);
    expect(listed).toEqual([...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name));
  });
});

describe("the alerts", () => {
  it("use only metrics, labels and outcomes that Weir writes", () => {
    expect(alerts.match(/\bweir_/g)?.length).toBeGreaterThan(10);
    expect(faultsOf(alerts)).toEqual([]);
    const recorded = [...alerts.matchAll(/- record: (\S+)/g)].map(([, name]) => name);
    const used = alerts.match(/\bweir:[\w:]+/g) ?? [];
    expect(used.filter((name) => !recorded.includes(name))).toEqual([]);
  });

  it.skipIf(!hasPromtool)("are valid for promtool", () => {
    expect(promtool(["check", "rules", ALERTS])).toMatchObject({ status: 0 });
  });

  it.skipIf(!hasPromtool)("fire as their tests for promtool expect", () => {
    const result = promtool(["test", "rules", "deploy/prometheus/alerts.test.yml"]);
    expect(result).toMatchObject({ status: 0, output: expect.stringContaining("SUCCESS") });
  });

  it("have a test each", () => {
    const tests = readFileSync("deploy/prometheus/alerts.test.yml", "utf8");
    const names = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name);
    expect(names.filter((name) => !tests.includes(`alertname: ${name}\n`))).toEqual([]);
  });
});

describe("the dashboard", () => {
  it("uses only metrics, labels and outcomes that Weir writes", () => {
    expect(queries.length).toBeGreaterThan(15);
    expect(queries.flatMap(faultsOf)).toEqual([]);
    expect(faultsOf(JSON.stringify(dashboard.templating).replaceAll('\\"', '"'))).toEqual([]);
  });

  it.skipIf(!hasPromtool)("has only queries that Prometheus can parse", () => {
    const rules = queries.map((query, index) => ({
      record: `query:${index}`,
      expr: query.replaceAll("$__rate_interval", "5m"),
    }));
    const folder = mkdtempSync(join(tmpdir(), "weir-queries-"));
    const file = join(folder, "rules.yml");
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
    const result = promtool(["check", "rules", file]);
    rmSync(folder, { recursive: true });
    expect(result).toMatchObject({ status: 0 });
  });

  it("has panels that do not overlap", () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });
});
