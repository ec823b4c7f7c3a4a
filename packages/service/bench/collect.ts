/**
 * Loaded into the processes whose memory is measured: on SIGURG they collect what is garbage. Needs `--expose-gc`.
 * The last resort also gives back what the heap keeps for later, which differs by 100 KiB a socket from run to run.
 */
process.on('SIGURG', () => globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' }))
