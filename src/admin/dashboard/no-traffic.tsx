import { Empty } from "./notice.tsx";

/** What the overview shows before the first request. */
export function NoTraffic({ url }: { url: string }) {
  const { origin } = new URL(url);
  return (
    <Empty title="No traffic yet">
      <p>Send some requests, and look at this page again after 5 seconds:</p>
      <pre tabindex={0}>
        <code>{`for i in $(seq 20); do curl -s -o /dev/null -w '%{http_code}\\n' ${origin}/; done`}</code>
      </pre>
      <p>
        In a clone of Weir, <code>npm run dev -- --traffic</code> sends traffic to look at.
      </p>
    </Empty>
  );
}
