import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";
import { settingIn, valueIn } from "./notation.ts";

/**
 * The oldest compatibility date that Weir supports. With an older date, requests cannot wait for a call
 * that another request has made (`handle_cross_request_promise_resolution`).
 */
export const MIN_DATE = "2024-10-14";

/** The periods of Cloudflare's own rate limiters, in seconds. */
const PERIODS = [10, 60];

/** Findings about the main module, the compatibility date and Cloudflare's own rate limiter. */
export function workerFindings(config: Config, deployment: Deployment): LocalFinding[] {
  return [
    ...mainFindings(deployment),
    ...compatibilityFindings(deployment),
    ...nativeLimiterFindings(config, deployment),
  ];
}

function mainFindings({ file, main, isPages }: Deployment): LocalFinding[] {
  if (isPages) return [];
  const fault = { code: "main-missing", severity: "fault", path: "main" } as const;
  if (main.path === undefined) {
    return [
      {
        ...fault,
        message: "No main module is named, so nothing runs Weir",
        cure: `Write ${settingIn(file, "main", "src/worker.ts")}, the module that exports weir(config)`,
      },
    ];
  }
  if (main.text !== undefined || main.kind === "other") return [];
  const message = `There is no file ${main.path}`;
  return main.kind === "javascript"
    ? [{ ...fault, severity: "warning", message, cure: "Build the Worker first, or correct main" }]
    : [{ ...fault, message, cure: "Correct main, or create the file" }];
}

function compatibilityFindings(deployment: Deployment): LocalFinding[] {
  const { compatibilityDate: date } = deployment;
  const finding = {
    code: "compatibility-date",
    severity: "fault",
    path: "compatibility_date",
  } as const;
  const cure = `Write ${settingIn(deployment.file, "compatibility_date", MIN_DATE)} or a later date`;
  if (date === undefined) {
    // Vite's plugin and the option --compatibility-date set a date that the file does not show.
    const isKnown = deployment.main.path === undefined || deployment.main.kind === "other";
    const message =
      "No compatibility date is set, so wrangler deploy fails, unless it has the option --compatibility-date";
    return deployment.isPages || isKnown
      ? []
      : [{ ...finding, severity: "warning", message, cure }];
  }
  if (!isDate(date)) {
    return [
      { ...finding, message: `The compatibility date ${date} is no date such as 2026-01-31`, cure },
    ];
  }
  // The dates have the form of ISO 8601, so the order of the texts is the order of the dates.
  if (date >= MIN_DATE) return [];
  const message = `With the compatibility date ${date}, requests cannot share calls to the store`;
  return [{ ...finding, message, cure }];
}

function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  // Date reads 30 February as 2 March.
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

function nativeLimiterFindings({ nativeLimiter }: Config, deployment: Deployment): LocalFinding[] {
  if (!nativeLimiter) return [];
  const bound = deployment.rateLimits.find(({ name }) => name === nativeLimiter.binding);
  if (!bound) {
    return [
      {
        code: "native-limiter-unbound",
        severity: "fault",
        path: "ratelimits",
        message: `nativeLimiter names the binding ${nativeLimiter.binding}, but no rate limiter has this name`,
        cure: `Add ${valueIn(deployment.file, { name: nativeLimiter.binding, namespace_id: "1001", simple: { limit: 100, period: 60 } })} to ratelimits`,
      },
    ];
  }
  if (PERIODS.includes(bound.period as number)) return [];
  return [
    {
      code: "native-limiter-period",
      severity: "fault",
      path: "ratelimits",
      message: `The rate limiter ${bound.name} has the period ${String(bound.period)}, but Cloudflare accepts only 10 and 60 seconds`,
      cure: `Write ${settingIn(deployment.file, "period", 60)}`,
    },
  ];
}
