import { parseIsoTime } from "../../src/config/iso-time.ts";
import type { Config } from "../../src/config/schema.ts";
import type { Explanation } from "../../src/explain/explanation.ts";
import { AdminError, EXIT, wrongOptions } from "../admin/admin-error.ts";
import { jsonText } from "../print/json-text.ts";
import { describeRequest, type RequestOptions } from "./describe-request.ts";
import { explanationText } from "./explanation-text.ts";
import { hintsFor } from "./hints.ts";
import { explainLive, otherForm } from "./live-explanation.ts";
import { explainLocally, hostFor, type LocalOptions, readConfig } from "./local-explanation.ts";
import type { DefaultHost } from "./request-url.ts";

/** The options of the command `explain`. */
export interface ExplainOptions extends RequestOptions, LocalOptions {
  readonly atTime?: string;
  readonly against?: string;
  readonly verbose?: true;
}

/** An explanation, and all that its reader must know about it. */
interface Explained {
  readonly explanation: Explanation;
  /** The document for `--json`, without notes. */
  readonly answer: object;
  readonly notes: readonly string[];
  readonly now: number;
  /** Whether the request and the response are unknown, because the Worker is older. */
  readonly isPartial: boolean;
}

/**
 * Explains a request, and prints the explanation.
 *
 * @returns the exit code: 0 whatever the verdict is, 1 for wrong input, 2 if there is no explanation
 */
export async function runExplain(options: ExplainOptions): Promise<number> {
  try {
    console.log(
      printed(await (options.against === undefined ? byConfig : byWorker)(options), options),
    );
    return EXIT.done;
  } catch (error) {
    if (!(error instanceof AdminError)) throw error;
    if (options.json) console.log(jsonText({ ok: false, error: error.message }));
    else console.error(error.message);
    return error.exitCode;
  }
}

async function byConfig(options: ExplainOptions): Promise<Explained> {
  const now = timeOf(options.atTime);
  // The request is read first, because its faults are found sooner, and only a path needs the configuration.
  let config: Promise<Config> | undefined;
  const load = () => {
    config ??= readConfig(options);
    return config;
  };
  const { request, notes } = await describeRequest(options, async () => hostFor(await load()));
  const local = await explainLocally(request, await load(), options, now);
  const { explanation } = local;
  const all = [...notes, ...local.notes];
  return { explanation, answer: explanation, now, isPartial: false, notes: all };
}

async function byWorker(options: ExplainOptions): Promise<Explained> {
  const { against = "", atTime, env, wrangler } = options;
  if (atTime !== undefined) {
    throw wrongOptions("--at-time works only without --against: a Worker uses its own clock.");
  }
  const { request, notes } = await describeRequest(options, async () => hostOf(against));
  const live = await explainLive(request, {
    at: against,
    ...(env !== undefined && { env }),
    ...(wrangler !== undefined && { wrangler }),
  });
  return { ...live, now: Date.now(), notes: [...live.notes, ...notes] };
}

function timeOf(atTime: string | undefined): number {
  if (atTime === undefined) return Date.now();
  const form = /^\d{4}-\d\d-\d\dT[\d:.]{5,12}(?:Z|[+-]\d\d:\d\d)$/i;
  const time = form.test(atTime) ? parseIsoTime(atTime) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  throw wrongOptions("--at-time must be a time with its zone, such as 2026-12-01T08:00:00Z.");
}

/** A path without a host belongs to the Worker that explains it. */
function hostOf(against: string): DefaultHost {
  const url = URL.parse(against);
  if (!url?.hostname) {
    throw wrongOptions("--against must be the URL of a Worker, such as https://api.example.com.");
  }
  const { hostname: host } = url;
  return { host, note: `The path has no host, so that of --against was taken: ${host}.` };
}

function printed(explained: Explained, { json, verbose, against }: ExplainOptions): string {
  const { explanation, answer, now, isPartial } = explained;
  try {
    const notes = [...explained.notes, ...hintsFor(explanation)];
    if (json) return jsonText({ ...answer, notes });
    return explanationText(explanation, { isVerbose: verbose === true, now, notes, isPartial });
  } catch (error) {
    // A field that is missing in an answer appears as one of these errors when the answer is printed.
    const isMissing = error instanceof TypeError || error instanceof RangeError;
    throw isMissing && against !== undefined ? otherForm() : error;
  }
}
