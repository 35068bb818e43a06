/** What to print once the Worker answers: where it stands, and commands to copy. */
export function linesToTry(run: { url: string; origin: string; store: string }): string {
  const { url, origin, store } = run;
  return `
Weir answers at ${url}
  origin:      ${origin}
  counting in: ${store}

As it comes, weir.config.ts lets each client POST /login five times a minute. Try the sixth:

  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%{http_code}\\n' -X POST ${url}/login; done

See a whole answer, and its RateLimit fields:

  curl -i -X POST ${url}/login

Be another client (only here: on Cloudflare nobody can set this header):

  curl -i -X POST -H 'CF-Connecting-IP: 203.0.113.7' ${url}/login

Ctrl-C ends it.
`;
}
