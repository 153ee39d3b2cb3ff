// Preloaded (node --import) into servers that others wrote: once one listens, it prints {"listening": PORT}, so that each
// can be given port 0, and it ends when its stdin does, so that it never outlives the test.
import { Server } from 'node:net';

const { listen } = Server.prototype;
Server.prototype.listen = function (...args) {
    this.once('listening', () => process.stdout.write(`\n${JSON.stringify({ listening: this.address().port })}\n`));
    return listen.apply(this, args);
};
// The signal, other than process.exit, lets a server end its own children.
process.stdin.resume().on('end', () => process.kill(process.pid, 'SIGTERM'));
