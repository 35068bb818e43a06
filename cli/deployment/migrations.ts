import { isTable } from "./wrangler-file.ts";

/** The storage of the objects of a class: SQLite, or the older key-value storage. */
export type StorageOfClass = "sqlite" | "key-value";

/**
 * Returns the classes of Durable Objects that exist after all migrations.
 *
 * @param migrations the list `migrations` of wrangler's configuration
 * @param exported its table `exports`, which replaces migrations in newer projects
 */
export function classesOf(migrations: unknown, exported: unknown): Map<string, StorageOfClass> {
  const classes = new Map<string, StorageOfClass>();
  for (const step of listOf(migrations).filter(isTable)) {
    for (const name of listOf(step.new_classes)) classes.set(String(name), "key-value");
    for (const name of listOf(step.new_sqlite_classes)) classes.set(String(name), "sqlite");
    for (const name of listOf(step.deleted_classes)) classes.delete(String(name));
    for (const { from, to } of listOf(step.renamed_classes).filter(isTable)) {
      classes.set(String(to), classes.get(String(from)) ?? "sqlite");
      classes.delete(String(from));
    }
    // A class that comes from another Worker keeps its storage. This file does not show the storage.
    for (const { to } of listOf(step.transferred_classes).filter(isTable)) {
      classes.set(String(to), "sqlite");
    }
  }
  for (const [name, entry] of Object.entries(isTable(exported) ? exported : {})) {
    if (!isTable(entry) || entry.type !== "durable-object") continue;
    const { state = "created" } = entry;
    if (state !== "created" && state !== "expecting-transfer") continue;
    classes.set(name, entry.storage === "legacy-kv" ? "key-value" : "sqlite");
  }
  return classes;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
