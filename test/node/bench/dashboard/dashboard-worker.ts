import {
  bundleForWorkerd,
  startWorkerd,
  type Workerd,
  workerConfig,
} from "../../../../dev/workerd.ts";

/** Starts the dashboard of test/workerd/admin/dashboard/year-worker.ts in workerd, with the statistics of a year. */
export async function startDashboard(): Promise<Workerd & { readonly origin: string }> {
  const code = await bundleForWorkerd({
    entryPoints: ["test/workerd/admin/dashboard/year-worker.ts"],
    minify: true,
  });
  const config = {
    ...workerConfig("dashboard", { "main.mjs": code }),
    env: {
      CONTROL: { type: "durable-object", worker: "dashboard", exportName: "YearObject" } as const,
    },
    exports: { YearObject: { type: "durable-object", storage: "sqlite" } as const },
  };
  const workerd = await startWorkerd([{ config }], {
    onLog: ({ level, message }) => console.error(`${level}: ${message}`),
  });
  const origin = workerd.urls[0]?.origin ?? "";
  await fetch(`${origin}/fill`, { method: "POST" });
  return { ...workerd, origin };
}
