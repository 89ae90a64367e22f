import test from 'ava';
import { testLedgerContract } from '../contract/ledger.ts';
import { testLedgerModel } from '../contract/ledger_model.ts';
import { testRepeatsContract } from '../contract/repeats.ts';
import { testVerifyContract } from '../contract/verify.ts';
import { sqlitePlace } from '../support/books.ts';

testLedgerContract(test, sqlitePlace);
testRepeatsContract(test, sqlitePlace);
testVerifyContract(test, sqlitePlace);
testLedgerModel(test, sqlitePlace, 10_000);
