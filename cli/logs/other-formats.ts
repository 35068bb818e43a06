import { AccessLineParser } from "./access-line.ts";
import { STANDARD_INPUT } from "./bytes.ts";
import { jsonFault } from "./json-records.ts";

/** A format that is not read, with the command that turns its lines into access lines or JSON lines. */
export interface OtherFormat {
  readonly name: string;
  /** Matches a line of this format. */
  readonly sign: RegExp;
  /** A command for a shell, without the file. */
  readonly command: string;
}

/** The formats that people have most often. docs/replay.md names them too. */
export const OTHER_FORMATS: readonly OtherFormat[] = [
  {
    name: "a load balancer of AWS (ALB)",
    sign: /^(?:https?|h2|grpcs|wss?) \d{4}-\d\d-\d\dT\S+Z app\/\S+ \S+:\d+ /,
    command: String.raw`sed -E 's/^[^ ]+ ([^ ]+) [^ ]+ ([^ ]+):[0-9]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+ ([^ ]+) [^ ]+ [^ ]+ ([^ ]+) ("[^"]*") ("[^"]*").*/\2 - - [\1] \5 \3 \4 "-" \6/'`,
  },
  {
    name: "CloudFront",
    sign: /^#Fields: .*\bx-edge-location\b/,
    command: String.raw`awk -F'\t' '!/^#/ { q = $12 == "-" ? "" : "?" $12; printf "%s - - [%sT%sZ] \"%s http://%s%s%s HTTP/1.1\" %s %s \"%s\" \"%s\"\n", $5, $1, $2, $6, $16, $8, q, $9, $4, $10, $11 }'`,
  },
  {
    name: "IIS, with its default fields",
    sign: /^#Fields: .*\bs-ip\b.*\bcs-uri-stem\b/,
    command: String.raw`awk '!/^#/ { q = $6 == "-" ? "" : "?" $6; printf "%s - - [%sT%sZ] \"%s %s%s HTTP/1.1\" %s 0 \"%s\" \"%s\"\n", $9, $1, $2, $4, $5, q, $12, $11, $10 }'`,
  },
  {
    name: "HAProxy, with times in UTC",
    sign: /\S+:\d+ \[\d\d\/[A-Z][a-z]{2}\/\d{4}:[\d:.]+\] \S+ \S+\/\S+ [\d/+-]+ /,
    command: String.raw`sed -E 's/^(.* )?([^ ]+):[0-9]+ \[([^]]+)\] [^ ]+ [^ ]+ [^ ]+ ([^ ]+) ([0-9]+) .*("[^"]*")$/\2 - - [\3 +0000] \6 \4 \5/'`,
  },
  {
    name: "Docker's json-file",
    sign: /^\{"log":".*"stream":"std(?:out|err)"/,
    command: "jq -rj .log",
  },
  {
    name: "containerd or CRI-O",
    sign: /^\d{4}-\d\d-\d\dT\S+ std(?:out|err) [FP] /,
    command: "sed -E 's/^[^ ]+ std(out|err) [FP] //'",
  },
  {
    name: "docker logs -t or kubectl logs --timestamps",
    sign: /^\d{4}-\d\d-\d\dT\S+ (?:\S+ \S+ \S+ \[\d\d\/[A-Z][a-z]{2}\/|\{")/,
    command: "sed -E 's/^[^ ]+ //'",
  },
  {
    name: "docker compose or kubectl with prefixes",
    sign: /^(?:[\w.-]+ +\| |\[pod\/\S+\] )/,
    command: String.raw`sed -E 's/^([A-Za-z0-9_.-]+ +\| |\[pod[^]]*\] )//'`,
  },
  {
    name: "syslog",
    sign: /^(?:<\d+>)?(?:\d+ )?(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT\S+) \S+ .*(?:\[\d\d\/[A-Z][a-z]{2}\/|\{")/,
    command: String.raw`sed -E 's/^(<[0-9]+>)?([0-9]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+ (-|\[[^]]*\])|([A-Z][a-z]+ +[0-9]+ [0-9:]+|[0-9]{4}-[^ ]+) [^ ]+ [^ ]+:) //'`,
  },
];

/** The number of lines that are compared with other formats, and the number of their first characters. */
const COMPARED = 20;
const MAX_COMPARED = 1000;

/** Returns how to convert a log in one of these formats, as the end of a message; undefined if it is in none of them. */
export function conversionOf(file: string, lines: readonly string[]): string | undefined {
  const first = lines.slice(0, COMPARED).map((line) => line.slice(0, MAX_COMPARED));
  const other = OTHER_FORMATS.find(({ sign }) => first.some((line) => sign.test(line)));
  if (!other) return undefined;
  return `its lines are as ${other.name} writes them. Convert them: ${pipeOf(other.command, file)}`;
}

/** Returns a command for a shell that passes a file through another command before `weir replay` reads it. */
export function pipeOf(command: string, file: string): string {
  const name = /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
  if (file === STANDARD_INPUT) return `… | ${command} | npx weir replay -`;
  const isCompressed = /\.(?:gz|zst)$/.test(file);
  const reader = file.endsWith(".gz") ? "zcat" : "zstdcat";
  const start = isCompressed ? `${reader} ${name} | ${command}` : `${command} ${name}`;
  return `${start} | npx weir replay -`;
}

/**
 * Says what is wrong with the first line of a log, as the start of a sentence. Has no part of the line, because any
 * part may be a secret.
 */
export function firstFault(lines: readonly string[]): string {
  const at = lines.findIndex((line) => line.trim() !== "");
  const first = lines[at] ?? "";
  const isJson = /^\s*[[{]/.test(first);
  const fault = isJson ? jsonFaultOf(first) : new AccessLineParser(undefined).parse(first);
  return `Line ${at + 1} ${fault ?? "has no request"}`;
}

/** Only the next lines show that a list goes on. */
function jsonFaultOf(line: string): string {
  if (line.trim() !== "[") return jsonFault(line);
  return "begins a list, whose records have several lines: pass the log through jq -c '.[]'";
}
