import { Bar, Sign } from "./bar.tsx";
import { countText, percentText } from "./format.ts";
import { RuleLink } from "./links.tsx";
import { ModeBadge } from "./mode-badge.tsx";
import { exceededCount, peakText, type RuleRow, sortedRules } from "./rule-sums.ts";
import { Table } from "./table.tsx";
import type { Tone } from "./tone.ts";

interface BusiestProps {
  readonly rows: readonly RuleRow[];
  /** How many rules to list. */
  readonly count: number;
}

const NEAREST = "Rules nearest to their limits";

/** The rules that run nearest to their limits. */
export function BusiestRules({ rows, count }: BusiestProps) {
  // Rules with the same peak are in the order of their share, and then of their requests.
  const listed = (["requests", "share", "peak"] as const)
    .reduce<readonly RuleRow[]>(sortedRules, rows)
    .slice(0, count);
  return (
    <section class="card" id="rules" data-live>
      <h2>
        {NEAREST}{" "}
        <a class="more" href="/_weir/rules">
          All {countText(rows.length)}
        </a>
      </h2>
      <Table
        caption={NEAREST}
        columns={[
          { label: "Rule" },
          { label: "Requests", number: true },
          { label: "Peak use", number: true },
          { label: "Over the limit", number: true },
        ]}
      >
        {listed.map(({ rule, sums }) => (
          <tr>
            <th scope="row">
              <RuleLink rule={rule.name} /> <ModeBadge mode={rule.mode} />
            </th>
            <td class="number">{countText(sums.requests)}</td>
            <td class="number">
              {peakText(sums)}
              <Bar share={sums.peak} tone={rule.mode === "shadow" ? "shadow" : "limited"} />
            </td>
            <td class="number">{percentText(exceededCount(sums), sums.requests)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

/** How many rules the table of shadow rules lists. The page of all rules has the others. */
const MAX_SHADOW_RULES = 20;

/** What the rules in shadow mode would have denied, beside what is denied. */
export function ShadowRules({ rows }: { rows: readonly RuleRow[] }) {
  const shadow = rows.filter(({ rule, sums }) => rule.mode === "shadow" || sums.shadowLimited > 0);
  if (shadow.length === 0) return null;
  const heading = (tone: Tone, text: string) => (
    <>
      <Sign tone={tone} /> {text}
    </>
  );
  return (
    <section class="card" id="shadow" data-live>
      <h2>Shadow beside live</h2>
      <Table
        caption="What each rule in shadow mode would have denied, beside what it has denied"
        showsCaption
        columns={[
          { label: "Rule" },
          { label: "Requests", number: true },
          { label: heading("shadow", "Would deny"), number: true },
          { label: heading("limited", "Denied"), number: true },
        ]}
      >
        {sortedRules(shadow, "shadow")
          .slice(0, MAX_SHADOW_RULES)
          .map(({ rule, sums }) => (
            <tr>
              <th scope="row">
                <RuleLink rule={rule.name} /> <ModeBadge mode={rule.mode} />
              </th>
              <td class="number">{countText(sums.requests)}</td>
              <Part count={sums.shadowLimited} of={sums.requests} tone="shadow" />
              <Part count={sums.limited} of={sums.requests} tone="limited" />
            </tr>
          ))}
      </Table>
    </section>
  );
}

function Part({ count, of, tone }: { count: number; of: number; tone: Tone }) {
  return (
    <td class="number">
      {countText(count)} <small>{percentText(count, of)}</small>
      <Bar share={count / Math.max(1, of)} tone={tone} />
    </td>
  );
}
