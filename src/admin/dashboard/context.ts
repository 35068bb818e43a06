import type { Context } from "hono";
import type { AdminEnv } from "../admin-problem.ts";

/** Hono's context in the handlers of the dashboard. */
export type DashboardContext = Context<AdminEnv>;
