// Takes the funding addresses off the lock file: it names no host, so that any registry can serve it.
import { readFileSync, writeFileSync } from 'node:fs';

const file = new URL('package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(file, 'utf8'));
for (const entry of Object.values(lock.packages)) delete entry.funding;
writeFileSync(file, JSON.stringify(lock, null, 2) + '\n');
