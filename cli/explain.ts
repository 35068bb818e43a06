import { type Command, Option } from "commander";
import type { ExplainOptions } from "./explain/explanation.ts";
import { withoutNodeEnv } from "./process.ts";

const HELP = `
Examples:
  explain POST https://api.example.com/login --ip 203.0.113.7
  explain /search?q=a -H 'x-api-key: abc' --cf country=DE
  explain 'https://api.example.com/graphql' -b 'session=abc' --data-raw '{}'
  explain GET /search --ip 203.0.113.7 --against https://api.example.com

The options that describe the request are those of curl. So in a curl command, such as a browser's Copy as cURL (bash),
replace the word curl by npx weir explain. Options that do not change a request are ignored,
and files are not read. Two have another meaning: -v is --verbose, and --json prints JSON, unless a JSON text follows,
as in curl.

Without --against, the configuration is read from --config, all counts are 0, and nothing is sent, except that jwks
makes it fetch the issuer's keys. Secrets and vars come from environment variables, .dev.vars and wrangler's
configuration, as for weir doctor. With --against, the Worker explains the request with its live counters, and takes
no quota. The token is WEIR_ADMIN_TOKEN or WEIR_ADMIN_READ_TOKEN.

Exit codes:
  0    explained, whatever the verdict is
  1    wrong input: an option or the URL; or the Worker has refused the request
  2    not explained: no valid configuration, its code fails, no token, or the Worker does not answer

docs/replay.md shows an explanation.`;

/** Options of curl that do not change the request, without and with a value. */
const FLAGS = `-4/--ipv4 -6/--ipv6 -a/--append --anyauth --basic --ca-native --cert-status --compressed --create-dirs
  -q/--disable -f/--fail --fail-early --fail-with-body -g/--globoff -0/--http1.0 --http1.1 --http2
  --http2-prior-knowledge --http3 --http3-only -i/--include --show-headers -k/--insecure -j/--junk-session-cookies
  -L/--location --location-trusted -N/--no-buffer --no-alpn --no-clobber --no-keepalive --no-progress-meter
  --no-sessionid -Z/--parallel --path-as-is --post301 --post302 --post303 -#/--progress-bar -p/--proxytunnel --raw
  -O/--remote-name --remote-name-all -J/--remote-header-name -R/--remote-time --remove-on-error --retry-all-errors
  --retry-connrefused -S/--show-error -s/--silent --ssl --ssl-reqd --ssl-no-revoke --styled-output
  --suppress-connect-headers --tcp-fastopen --tcp-nodelay -1/--tlsv1 --tlsv1.0 --tlsv1.1 --tlsv1.2 --tlsv1.3
  --trace-ids --trace-time -B/--use-ascii --xattr`;
const FLAGS_WITH_VALUE = `--cacert --capath -E/--cert --cert-type --ciphers --connect-timeout --connect-to
  -c/--cookie-jar --create-file-mode --crlfile --curves --dns-interface --dns-servers --doh-url -D/--dump-header
  --etag-save --expect100-timeout --happy-eyeballs-timeout-ms --interface --keepalive-time --key --key-type --libcurl
  --limit-rate --local-port --max-filesize --max-redirs -m/--max-time --noproxy -o/--output --output-dir
  --parallel-max --pass --pinnedpubkey --proto --proto-default --proto-redir -x/--proxy --proxy-header
  -U/--proxy-user --rate --resolve --retry --retry-delay --retry-max-time --socks4 --socks5 --socks5-hostname
  -Y/--speed-limit -y/--speed-time --stderr --tls-max --tls13-ciphers --trace --trace-ascii --unix-socket
  -w/--write-out`;

/** Adds the command `explain`, which shows which rules apply to a request, why, and what they would do. */
export function addExplainCommand(program: Command): void {
  // Several options add to one body, in their order. A file after @ is not read.
  const body: (string | undefined)[] = [];
  const bodyPart = (text: string) => void body.push(text.startsWith("@") ? undefined : text);
  const formPart = () => {
    body.push(undefined);
    return true;
  };
  const encodedPart = (text: string) => void body.push(urlEncoded(text));
  const command = program
    .command("explain")
    .description(
      "Explains a request: which rules apply and why, the client's key and counters, and the response.",
    )
    .argument("[method]", "GET by default, POST with a body")
    .argument("[url]", "a URL, or a path")
    .option("-X, --request <method>", "the method")
    .option("-H, --header <field>", "a header field, such as 'x-api-key: abc'; repeatable", listed)
    .option("-d, --data <text>", "a part of the body; repeatable", bodyPart)
    .option("--data-raw <text>", "the same, but @ names no file", (text) => void body.push(text))
    .option("--data-urlencode <text>", "the same, encoded, such as 'q=a b'", encodedPart)
    .option("-G, --get", "put the data into the query, with the method GET")
    .option("-b, --cookie <pairs>", "cookies, such as 'session=abc'; repeatable", listed)
    .option("-u, --user <user:password>", "the field authorization, with the scheme Basic")
    .option("--oauth2-bearer <token>", "the field authorization, with the scheme Bearer")
    .option("-A, --user-agent <text>", "the field user-agent")
    .option("-e, --referer <url>", "the field referer")
    .option("-I, --head", "the method HEAD")
    .option("--url <url>", "the URL, instead of the argument", listed)
    .option("--ip <address>", "the client's IP address")
    .option("--cf <name=value>", "Cloudflare's data, such as country=DE; repeatable", listed)
    .option("--host <host>", "the host of the request, instead of the URL's")
    .option(
      "--at, --against <url>",
      "let the Worker at this URL explain it, with its live counters",
    )
    .option("--at-time <time>", "the time of the request, such as 2026-12-01T08:00:00Z")
    .option("--config <file>", "a .ts, .js, .mjs or .json file", "weir.config.ts")
    .option("--wrangler <file>", "wrangler's configuration (default: the one beside the rules)")
    .option("--env <name>", 'the environment of wrangler\'s configuration; "" for the top level')
    .option("-v, --verbose", "show all conditions, and long texts in full")
    .option("--json", "print one JSON document")
    .addHelpText("after", HELP)
    .action(async (...args: unknown[]) => {
      const command = args.at(-1) as Command;
      // Each command loads its code only when it runs, so that the other commands start sooner.
      const { runExplain } = await withoutNodeEnv(() => import("./explain/explanation.ts"));
      const { url = [], json, ...options } = command.opts<ExplainOptions & { url?: string[] }>();
      const given = [...command.args, ...url];
      // A text of JSON, or a file with it, is no method and no URL. So it is the value of curl's --json.
      const isData = (word: string) => json === true && /^\s*[[{"@]/.test(word);
      const jsonData = given.filter(isData);
      for (const text of jsonData) bodyPart(text);
      await runExplain({
        ...options,
        words: given.filter((word) => !isData(word)),
        body,
        isJsonData: jsonData.length > 0,
        ...(json && jsonData.length === 0 && { json }),
      });
    });
  for (const flags of ["--data-binary <text>", "--data-ascii <text>"]) {
    command.addOption(new Option(flags).argParser(bodyPart).hideHelp());
  }
  command.addOption(new Option("-F, --form <part>").hideHelp().argParser(formPart));
  for (const [list, value] of [
    [FLAGS, ""],
    [FLAGS_WITH_VALUE, " <value>"],
  ] as const) {
    for (const flags of list.split(/\s+/)) {
      command.addOption(new Option(flags.replace("/", ", ") + value).hideHelp());
    }
  }
}

function listed(each: string, others: readonly string[] = []): string[] {
  return [...others, each];
}

/** @returns a part of a form as curl's --data-urlencode encodes it; undefined for a file */
function urlEncoded(text: string): string | undefined {
  const [, name = "", sign, value = ""] = /^([^=@]*)([=@])(.*)$/s.exec(text) ?? ["", "", "=", text];
  if (sign === "@") return undefined;
  const encoded = encodeURIComponent(value)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
  return name === "" ? encoded : `${name}=${encoded}`;
}
