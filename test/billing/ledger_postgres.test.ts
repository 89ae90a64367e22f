import test from 'ava';
import { testLedgerContract } from '../contract/ledger.ts';
import { testLedgerModel } from '../contract/ledger_model.ts';
import { testRepeatsContract } from '../contract/repeats.ts';
import { testVerifyContract } from '../contract/verify.ts';
import { leaveOut } from '../fixtures/left_out.ts';
import { postgresMissing, postgresPlace, removePostgres } from '../fixtures/postgres.ts';

if (postgresMissing) {
  leaveOut('everything with PostgreSQL', postgresMissing);
} else {
  test.after.always(removePostgres);
  testLedgerContract(test, postgresPlace);
  testRepeatsContract(test, postgresPlace);
  testVerifyContract(test, postgresPlace);
  testLedgerModel(test, postgresPlace, 10_000);
}
