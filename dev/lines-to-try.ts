import type { DevToken } from "./admin-token.ts";
import { DEFAULT_PORT } from "./free-port.ts";

/**
 * Returns the text that `npm run dev` prints after the Worker has started. The text contains the
 * Worker's address, and commands that the reader can copy.
 */
export function linesToTry(run: {
  url: string;
  origin: string;
  store: string;
  token: DevToken;
  traffic: boolean;
}): string {
  const { url, origin, store, token, traffic } = run;
  const { port } = new URL(url);
  const at = Number(port) === DEFAULT_PORT ? "" : ` --at http://localhost:${port}`;
  const [shown, setting] = token.userFile
    ? [`the one in ${token.userFile}`, ""]
    : [token.value, `WEIR_ADMIN_TOKEN=${token.value} `];
  const commandLine = `${setting}npm run weir -- top${at}`;
  return `
Weir answers at ${url}
  origin:      ${origin}
  counting in: ${store}

If you have not changed weir.config.ts, each client can POST /login five times a minute. Send six:

  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\\n' -X POST ${url}/login; done

Print a whole answer with its RateLimit fields:

  curl -i -X POST ${url}/login

Send a request as another client (on Cloudflare, clients cannot set this header):

  curl -i -X POST -H 'CF-Connecting-IP: 203.0.113.7' ${url}/login

See who is limited, and change limits, in the dashboard or on the command line:

  http://localhost:${port}/_weir/login
  token: ${shown}

  ${commandLine}

${traffic ? "Invented traffic runs until you stop: a day of visitors passes in 24 minutes.\n" : ""}Press Ctrl-C to stop.
`;
}
