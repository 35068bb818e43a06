import { formatDuration } from "../../src/config/duration.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import { formatWindow } from "../../src/config/windows.ts";
import type { LocalFinding } from "../finding.ts";

/** Warnings about the bans of one rule. */
export function banWarnings(rule: Rule, place: string): LocalFinding[] {
  const { name, banMs, escalation, windows, tiers } = rule;
  if (banMs === undefined) return [];
  const ownShortest = shortestOf(windows);
  const allWindows = [...windows, ...[...(tiers?.windows.values() ?? [])].flat()];
  const shortest = shortestOf(allWindows);
  const longestMs = escalation?.lengthsMs.at(-1) ?? banMs;
  const warning = { severity: "warning", path: `${place}.ban` } as const;
  if (allWindows.every(({ limit }) => limit === 0)) {
    return [
      {
        ...warning,
        code: "ban-without-limit",
        message: `In the rule "${name}", no ban starts, because a limit of 0 starts no ban`,
        cure: "Remove ban: the rule denies every request that it matches anyway",
      },
    ];
  }
  const findings: (LocalFinding | false)[] = [
    longestMs < ownShortest.windowMs && {
      ...warning,
      code: "ban-shorter-than-window",
      message: `In the rule "${name}", a ban of ${formatMs(longestMs)} usually ends before the window of ${formatWindow(ownShortest)}, so it changes little`,
      cure: "Make the ban longer than the window, or remove it",
    },
    escalation !== undefined &&
      longestMs === banMs && {
        ...warning,
        code: "ban-lengths-equal",
        message: `In the rule "${name}", all bans last ${formatMs(banMs)}, so no ban is longer than the one before it`,
        cure: `Write ban: "${formatMs(banMs)}", or make the later lengths longer`,
      },
    escalation !== undefined &&
      escalation.forgetAfterMs < shortest.windowMs && {
        ...warning,
        code: "ban-forgotten-soon",
        message: `In the rule "${name}", strikes are forgotten ${formatMs(escalation.forgetAfterMs)} after a ban, which is less than the window of ${formatWindow(shortest)}. So most bans have the first length`,
        cure: "Set forgetAfter to at least the length of the window",
      },
  ];
  return findings.filter((finding) => finding !== false);
}

function shortestOf(windows: readonly Window[]): Window {
  return windows.reduce((one, other) => (other.windowMs < one.windowMs ? other : one));
}

function formatMs(ms: number): string {
  return formatDuration(ms / 1000);
}
