import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import type { Deployment } from "./deployment.ts";

/**
 * The oldest compatibility date with which the Worker runs. Before this date, a call of a method
 * of a Durable Object needs the compatibility flag `rpc`.
 */
const MIN_COMPATIBILITY_DATE = "2024-04-03";

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

function mainFindings({ main }: Deployment): LocalFinding[] {
  const fault = { code: "main-missing", severity: "fault", path: "main" } as const;
  if (main.path === undefined) {
    return [
      {
        ...fault,
        message: "No main module is named, so nothing runs Weir",
        cure: 'Write main = "src/worker.ts", the module that exports weir(config)',
      },
    ];
  }
  if (main.text !== undefined) return [];
  const message = `There is no file ${main.path}`;
  return main.mayBeBuilt
    ? [{ ...fault, severity: "warning", message, cure: "Build the Worker first, or correct main" }]
    : [{ ...fault, message, cure: "Correct main, or create the file" }];
}

function compatibilityFindings({ compatibilityDate: date }: Deployment): LocalFinding[] {
  if (date === undefined || !(date < MIN_COMPATIBILITY_DATE)) return [];
  return [
    {
      code: "compatibility-date",
      severity: "fault",
      path: "compatibility_date",
      message: `With the compatibility date ${date}, the runtime lacks functions that Weir calls`,
      cure: `Write compatibility_date = "${MIN_COMPATIBILITY_DATE}" or a later date`,
    },
  ];
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
        cure: `Add { name = "${nativeLimiter.binding}", namespace_id = "1001", simple = { limit = 100, period = 60 } } to ratelimits`,
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
      cure: "Write period = 60",
    },
  ];
}
