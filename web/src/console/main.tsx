import { render } from 'preact';
import '../style/console.css';
import { Console } from './Console.tsx';

const page = document.getElementById('page');
if (page) render(<Console />, page);
