/** The text to print when the Worker answers: its address, and commands to copy. */
export function linesToTry(run: { url: string; origin: string; store: string }): string {
  const { url, origin, store } = run;
  return `
Weir answers at ${url}
  origin:      ${origin}
  counting in: ${store}

Without changes, weir.config.ts lets each client POST /login five times a minute. Try the sixth:

  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\\n' -X POST ${url}/login; done

See a whole answer with its RateLimit fields:

  curl -i -X POST ${url}/login

Be another client (only locally: on Cloudflare clients cannot set this header):

  curl -i -X POST -H 'CF-Connecting-IP: 203.0.113.7' ${url}/login

Ctrl-C ends it.
`;
}
