import type {
  ExplainedBan,
  ExplainedKeyElement,
  ExplainedRule,
} from "../../explain/explanation.ts";
import { effectText } from "./effect-text.ts";
import { ConditionTable } from "./explained-conditions.tsx";
import { CounterTable } from "./explained-counters.tsx";
import { countText, durationText, exactTime } from "./format.ts";
import { ClientLink, RuleLink } from "./links.tsx";
import { ModeBadge } from "./mode-badge.tsx";

/** A rule that applies: its conditions, the client's key, and the counters. */
export function ExplainedRuleCard({ rule, now }: { rule: ExplainedRule; now: number }) {
  const { mode, why, exceeds, conditions, key, client, tier, cost, costSource } = rule;
  const { counters, banMs = 0, newBan, mayDiffer } = rule;
  return (
    <section class="card explained">
      <h2>
        <RuleLink rule={rule.rule} />
        <ModeBadge mode={mode} />
        {exceeds && <span class="badge limited">over its limit</span>}
        {banMs > 0 && <span class="badge limited">banned for {durationText(banMs)}</span>}
      </h2>
      <p class="hint">{why}</p>
      <ConditionTable rule={rule.rule} conditions={conditions} />
      <h3>Client</h3>
      {client !== undefined && <ClientLink client={client} rule={rule.rule} />}
      <KeyList elements={key} />
      <p class="hint">
        {cost !== undefined && `Costs ${countText(cost)} (${costSource}). `}
        {tier !== undefined && `The client's tier is ${tier}.`}
      </p>
      <OverrideText rule={rule} />
      {counters && <CounterTable rule={rule.rule} counters={counters} now={now} />}
      {mayDiffer && (
        <p class="hint">
          The decision depends on the two shards that a request draws. This is the likelier one.
        </p>
      )}
      {newBan && <NewBan ban={newBan} />}
    </section>
  );
}

/** The rules that do not apply, each with the condition that fails. */
export function OtherRules({ rules }: { rules: readonly ExplainedRule[] }) {
  return (
    <section class="card explained">
      <h2>Rules that do not apply</h2>
      {rules.map((rule) => (
        <details>
          <summary>
            <bdi>{rule.rule}</bdi>
            <small> {reasonOf(rule)}</small>
          </summary>
          <ConditionTable rule={rule.rule} conditions={rule.conditions} />
          <OverrideText rule={rule} />
          <p class="hint">
            <RuleLink rule={rule.rule} />
          </p>
        </details>
      ))}
    </section>
  );
}

/** Returns the condition because of which a rule does not apply. */
function reasonOf({ conditions, why }: ExplainedRule): string {
  const last = conditions.at(-1);
  return last ? `${last.field}: ${last.actual}` : why;
}

function KeyList({ elements }: { elements: readonly ExplainedKeyElement[] }) {
  return (
    <ul class="plain">
      {elements.map(({ alternatives, isFallback }) => (
        <li>
          {alternatives.map(({ part, result, from, value }, index) => (
            <>
              {index > 0 && "; "}
              <code>
                <bdi>{part}</bdi>
              </code>{" "}
              {result === "used" ? (
                <>
                  is{" "}
                  <b>
                    <bdi>{value}</bdi>
                  </b>
                  , from {from}
                </>
              ) : (
                `is absent, because ${from}`
              )}
            </>
          ))}
          {isFallback && "; so the client's address is used"}.
        </li>
      ))}
    </ul>
  );
}

function OverrideText({ rule: { override } }: { rule: ExplainedRule }) {
  if (!override) return null;
  return (
    <p class="hint">
      <span class="badge override">override</span> <bdi>{effectText(override)}</bdi>, until{" "}
      {exactTime(override.expiresAt)}: “<bdi>{override.reason}</bdi>” – <bdi>{override.by}</bdi>
    </p>
  );
}

function NewBan({ ban: { until, isAtLeast, storedKey } }: { ban: ExplainedBan }) {
  return (
    <p class="hint">
      The request would begin a ban{isAtLeast && " of at least this length"}: until{" "}
      {exactTime(until)}, stored under{" "}
      <code>
        <bdi>{storedKey}</bdi>
      </code>
      .
    </p>
  );
}
